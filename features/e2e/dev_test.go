package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/features/e2e/harness"
)

// TestDevWorksAsPasted_O8: from an empty directory to a request and its trail with
// the lines that are printed, and again after a restart.
//
// Rules: O8.
func TestDevWorksAsPasted_O8(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED: curl is not installed, so the printed line cannot be pasted")
	}
	data := filepath.Join(t.TempDir(), "data")
	dev, ask, list := startDev(t, data)
	answer := paste(t, ask)
	if gjson.Get(answer, "choices.0.finish_reason").String() != "stop" {
		t.Fatalf("%s\nanswered %s", ask, answer)
	}
	id := listed(t, list)
	dev.Stop(t)

	again, ask, list := startDev(t, data)
	if kept := listed(t, list); kept != id {
		t.Errorf("after a restart the newest request is %q, it was %q", kept, id)
	}
	if answer := paste(t, ask); gjson.Get(answer, "choices.0.finish_reason").String() != "stop" {
		t.Errorf("after a restart: %s", answer)
	}
	trail := harness.Run(t, []string{"SLUICE_DATA_DIR=" + data}, "trail", id)
	if trail.Code != 0 || !strings.Contains(trail.Stdout, "failover: fake-b") {
		t.Errorf("sluice trail: exit %d\n%s%s", trail.Code, trail.Stdout, trail.Stderr)
	}
	again.Stop(t)
}

// startDev starts sluice dev and returns the two lines to paste.
func startDev(t *testing.T, data string) (dev *harness.Process, ask, list string) {
	t.Helper()
	dev = harness.Start(t, []string{"SLUICE_DATA_DIR=" + data}, "dev", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	dev.Await(t, "sluice dev prints two lines to paste", func() bool {
		var lines []string
		for line := range strings.Lines(dev.Stdout()) {
			if strings.HasPrefix(line, "curl ") && strings.HasSuffix(line, "\n") {
				lines = append(lines, line)
			}
		}
		if len(lines) == 2 {
			ask, list = lines[0], lines[1]
		}
		return len(lines) == 2
	})
	return dev, ask, list
}

// listed is the newest request, once the search has it.
func listed(t *testing.T, list string) (id string) {
	t.Helper()
	harness.Eventually(t, "the request is listed", func() bool {
		id = gjson.Get(paste(t, list), "data.0.id").String()
		return id != ""
	})
	return id
}

// paste runs a printed line in a shell, as a newcomer would.
func paste(t *testing.T, line string) string {
	t.Helper()
	shell := exec.Command("sh", "-c", line)
	shell.Stderr = os.Stderr
	output, err := shell.Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return string(output)
}
