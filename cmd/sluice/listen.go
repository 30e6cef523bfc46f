package main

import (
	"cmp"
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/spf13/cobra"
)

// The addresses of api.md. The admin listener is for this machine until somebody
// says otherwise (Z7).
const (
	defaultListen      = ":8080"
	defaultAdminListen = "127.0.0.1:8081"
)

// address is where to listen, and how a user chooses another.
type address struct {
	value, setting string
	// free allows any free port when the one wanted is taken.
	free bool
}

// addresses are the two of a worker: the flag, the variable, or the default.
type addresses struct{ public, admin *string }

func addListenFlags(cmd *cobra.Command) addresses {
	return addresses{
		public: cmd.Flags().String("listen", "", "address of the inference and tenant API (default $SLUICE_LISTEN or "+defaultListen+")"),
		admin:  cmd.Flags().String("admin-listen", "", "address of probes and metrics (default $SLUICE_ADMIN_LISTEN or "+defaultAdminListen+")"),
	}
}

// resolve settles the addresses. With free, an address that nobody asked for may
// give way to a free port: right for dev, where any port will do, and wrong for
// serve, whose clients know one.
func (a addresses) resolve(free bool) (public, admin address) {
	one := func(flag, variable, standard string) address {
		asked := cmp.Or(flag, os.Getenv(variable))
		return address{value: cmp.Or(asked, standard), setting: variable, free: free && asked == ""}
	}
	return one(*a.public, "SLUICE_LISTEN", defaultListen), one(*a.admin, "SLUICE_ADMIN_LISTEN", defaultAdminListen)
}

// listen binds an address, so that a taken port is told before anything starts.
func listen(a address) (net.Listener, error) {
	l, err := net.Listen("tcp", a.value)
	if a.free && errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(a.value)
		l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, &listenError{address: a.value, setting: a.setting, err: err}
	}
	return l, nil
}
