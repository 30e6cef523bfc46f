package main

import (
	"os"

	"github.com/sluice-gateway/sluice/adapters/network"
)

// internalHosts are the hosts inside the network that base URLs may point at (Z1): those
// of the environment, and the one address that sluice dev gives its fake provider; empty
// for none. That one is not opened to what a request points at.
func internalHosts(fakeProvider string) (network.Hosts, error) {
	hosts, err := network.HostsFrom(os.Getenv(network.HostsEnv))
	if err != nil {
		return nil, err
	}
	own, err := network.HostsFrom(fakeProvider)
	return append(hosts, own...), err
}

// guardHere refuses what a worker on a database would, as far as can be told from here:
// workers read their own environment. Where the database is dev's own, dev's fake
// provider is opened.
func guardHere(db database) (*network.Guard, error) {
	fake := ""
	if db.dev {
		var err error
		if fake, err = devDir(dataDir()).read(fakeProviderFile); err != nil {
			return nil, err
		}
	}
	hosts, err := internalHosts(fake)
	return &network.Guard{Opened: hosts}, err
}
