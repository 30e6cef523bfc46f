package network_test

import (
	"testing"

	"github.com/sluice-gateway/sluice/adapters/network"
)

// Rules: Z1.
func TestAddressesThatPointInsideAreFound_Z1(t *testing.T) {
	inside := []string{
		"http://127.0.0.1/a.png", "http://localhost:8080/a.png", "https://LOCALHOST./a.png", "http://a.localhost/",
		"http://10.1.2.3/", "http://172.16.0.1/", "http://192.168.1.1/", "http://169.254.169.254/latest/meta-data",
		"http://100.100.100.200/", "http://0.0.0.0/", "http://[::1]/", "http://[::]/", "http://[fe80::1%25eth0]/",
		"http://[fd00:ec2::254]/", "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::a00:1]/", "http://224.0.0.1/",
		"http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://1.2.3.0x4/",
		"http://metadata/", "http://metadata.google.internal/", "http://printer.local/", "http://router.lan/",
		"http://pictures.test@127.0.0.1/", " http://127.0.0.1/", "HTTP://127.0.0.1/", "ftp://10.0.0.1/a",
		"file:///etc/passwd", `http:\\127.0.0.1\a`, "http:127.0.0.1/a", "http://[::1/", "http://%31%32%37.0.0.1/",
		"http://127.0.0.１/", "http://１２７。0。0。１/", "http://ｌocalhost/",
	}
	for _, address := range inside {
		if !network.Inside(address, nil) {
			t.Errorf("%s counts as outside", address)
		}
	}
	outside := []string{
		"https://pictures.example.com/a.png", "http://8.8.8.8/a.png", "https://[2606:4700::1111]/a.png",
		"https://pictures.example.com:8443/a?b=http://127.0.0.1/", "gs://bucket/a.png", "https://127.0.0.1.example.com/",
		"https://my_bucket.example.com/a.png", "https://bücher.example/a.png",
		"data:image/png;base64,AAAA", "",
	}
	for _, address := range outside {
		if network.Inside(address, nil) {
			t.Errorf("%s counts as inside", address)
		}
	}
}

// Rules: Z1.
func TestAnOperatorOpensHosts_Z1(t *testing.T) {
	opened := network.HostsFrom(" Pictures.internal, 10.0.0.7 ,,[::1]")
	for address, want := range map[string]bool{
		"http://pictures.internal:9000/a.png": false, "http://10.0.0.7/a.png": false, "http://[::1]/": false,
		"http://10.0.0.8/a.png": true, "http://more.pictures.internal/": true,
	} {
		if got := network.Inside(address, opened); got != want {
			t.Errorf("%s: inside %v", address, got)
		}
	}
	if got := network.HostsFrom(""); len(got) != 0 {
		t.Errorf("nothing opens %q", got)
	}
}
