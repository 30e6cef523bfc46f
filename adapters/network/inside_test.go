package network_test

import (
	"strconv"
	"strings"
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
		"http://127.0.0.１/", "http://１２７。0。0。１/", "http://ｌocalhost/", "http://localhost../", "http://localhost。/",
		"http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://[64:ff9b::127.0.0.1]/",
		"http://[64:ff9b:1::808:808]/", "http://[2002:7f00:1::]/", "http://[2001:0:7f00:1::]/", "http://[fec0::1]/", "http://[ff02::1]/",
		"http://[fe80::1%25lo]/", "http://[::1%25lo]/", "http://168.63.129.16/", "http://192.0.0.192/", "http://255.255.255.255/",
		"http://0/", "http://017700000001/", "http://0x7f.1/", "http://127.0.1/", "http://0X7F000001/", "http://127.0.0.1./",
	}
	for _, address := range inside {
		if !network.Inside(address, nil) {
			t.Errorf("%s counts as outside", address)
		}
	}
	outside := []string{
		"https://pictures.example.com/a.png", "http://8.8.8.8/a.png", "https://[2606:4700::1111]/a.png",
		"https://pictures.example.com:8443/a?b=http://127.0.0.1/", "gs://bucket/a.png", "https://127.0.0.1.example.com/",
		"https://my_bucket.example.com/a.png", "http://[64:ff9b::8.8.8.8]/", "http://[::ffff:8.8.8.8]/", "https://provider.example./", "https://bücher.example/a.png",
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
	opened := network.MustHosts(" Pictures.internal, 10.0.0.7 ,,[::1],llm:8000,127.0.0.1:9000,[fd00::1]:443,fe80::1,fe80::2%eth0,Bücher.lan.")
	for address, want := range map[string]bool{
		"http://pictures.internal:9000/a.png": false, "http://10.0.0.7/a.png": false, "http://[::1]/": false,
		"http://PICTURES.internal./": false, "http://pictures.internal../": false, "http://[::ffff:10.0.0.7]:1/": false, "http://[64:ff9b::a00:7]/": false,
		"http://10.0.0.8/a.png": true, "http://more.pictures.internal/": true,
		"http://llm:8000/": false, "http://llm/": true, "http://llm:80/": true, "http://127.0.0.1:9000/v1": false,
		"http://127.0.0.1/": true, "http://localhost:9000/": true, "https://[fd00::1]/": false, "http://[fd00::1]/": true,
		"http://[fe80::1%25eth7]/": false, "http://[fe80::2%25eth0]/": false, "http://[fe80::2%25eth1]/": true,
		"http://xn--bcher-kva.lan/": false, "http://bücher.lan/": false,
	} {
		if got := network.Inside(address, opened); got != want {
			t.Errorf("%s: inside %v", address, got)
		}
	}
	if got := network.MustHosts(""); len(got) != 0 {
		t.Errorf("nothing opens %v", got)
	}
}

// A list that cannot be read is refused as a whole, with the entry: whoever wrote it
// believes that it opens something.
//
// Rules: Z1.
func TestAListThatCannotBeReadIsRefused_Z1(t *testing.T) {
	for _, list := range []string{
		"http://llm:8000", "10.0.0.0/8", "*.internal", "llm:port", "llm:0", "llm:65536", "llm:", "user@llm", "a b", "[::1", ".",
	} {
		hosts, err := network.HostsFrom("pictures.internal," + list)
		if err == nil || len(hosts) != 0 || !strings.Contains(err.Error(), strconv.Quote(list)) || !strings.Contains(err.Error(), network.HostsEnv) {
			t.Errorf("%s: %v, %v", list, hosts, err)
		}
	}
}

// What an operator is told to open is what opens it.
//
// Rules: Z1.
func TestHostOfIsWhatOpensIt_Z1(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:8000/v1": "127.0.0.1:8000", "https://LLM.internal./v1": "llm.internal:443", "http://[::1]/v1": "[::1]:80",
		"http://[fe80::1%25eth0]:8/": "[fe80::1%eth0]:8", "": "", "no url": "",
	} {
		got := network.HostOf(address)
		if got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
		if got != "" && network.Inside(address, network.MustHosts(got)) {
			t.Errorf("%s does not open %s", got, address)
		}
	}
}
