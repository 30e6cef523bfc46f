// Package harness runs the real sluice binary for black-box tests: an installation
// (a database and its configuration), workers that can be stopped, killed and
// watched, a client, and a balancer in front of several workers.
//
// A test reads like this:
//
//	fake := fakeprovider.Start(t, fakeprovider.Options{})
//	in := harness.Install(t, harness.Config{
//		Providers: []harness.Provider{{ID: "a", URL: fake.URL()}},
//		Models:    []harness.Model{{Slug: "m", Routes: []string{"a/fake-ok"}}},
//	})
//	key := in.Key(t, "acme") // before Serve, or the worker needs a moment to hear of it
//	reply := in.Serve(t).Client(key).Chat(t, "m", "hello")
//
// The test package calls pgtest.Main from its TestMain. Everything a test started
// ends with it; a worker that did not end well fails it.
package harness
