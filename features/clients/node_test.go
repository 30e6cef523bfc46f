package clients_test

import (
	"os"
	"os/exec"
	"testing"
)

// TestNode_P7 runs the scripts of node/ with the clients of its lock file. Each says
// at its head which client it drives.
//
// Rules: P7.
func TestNode_P7(t *testing.T) {
	installFromNPM(t, "node")
	g := startGateway(t)
	for _, s := range []struct {
		script string
		// left is how many streams the script leaves.
		left int
	}{
		{"chat.test.mjs", 1 + len(destinations)},
		{"responses.test.mjs", len(destinations)},
		{"messages.test.mjs", len(destinations)},
		{"ai-sdk.test.mjs", 3 * len(destinations)},
		{"langchain.test.mjs", 2 * len(destinations)},
	} {
		t.Run(s.script, func(t *testing.T) {
			g.fake.Reset()
			command := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", s.script)
			command.Dir = "node"
			command.Env = append(os.Environ(), "SLUICE_URL="+g.url, "SLUICE_KEY="+g.key, "SLUICE_POOR_KEY="+g.poorKey, "SLUICE_KEEPER_KEY="+g.keeps)
			output, err := command.CombinedOutput()
			t.Logf("%s", output)
			if err != nil {
				t.Fatal(err)
			}
			g.awaitClientsGone(t, s.left)
		})
	}
}
