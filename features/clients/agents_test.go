package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-gateway/sluice/adapters/fakeprovider"
)

// agentPatience bounds an agent's task. It takes seconds; a busy machine needs more.
const agentPatience = 2 * time.Minute

// noteName is the file of the task, and noteSays what an agent says that has read it.
const (
	noteName = "note.txt"
	noteSays = "the word of the day is kumquat"
)

// workshop is an agent's own home and its place to work.
type workshop struct{ home, dir string }

func newWorkshop(t *testing.T) workshop {
	t.Helper()
	w := workshop{home: t.TempDir(), dir: t.TempDir()}
	note := "first line\n" + fakeprovider.SayMarker(noteSays) + "\n"
	if err := os.WriteFile(filepath.Join(w.dir, noteName), []byte(note), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// task is a prompt after which the model calls one tool.
func task(tool, arguments string) string {
	return "What does " + noteName + " say? " + fakeprovider.ToolMarkerFor(tool, arguments)
}

// run runs an agent to its end and returns what it printed. Beyond the loopback it
// meets a proxy that nobody runs.
func (w workshop) run(t *testing.T, env []string, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), agentPatience)
	defer cancel()
	agent := exec.CommandContext(ctx, command[0], command[1:]...)
	agent.Dir = w.dir
	agent.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "TMPDIR=" + w.home, "LANG=C.UTF-8",
		"HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1",
	}, env...)
	agent.WaitDelay = time.Second // for what an agent has started itself
	var stdout, stderr bytes.Buffer
	agent.Stdout, agent.Stderr = &stdout, &stderr
	if err := agent.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, &stdout, &stderr)
	}
	return stdout.String()
}

// checkWalks looks at what the providers saw of a task: the faulty one was called and
// failed, and the other answered once with a call and once with the text.
func checkWalks(t *testing.T, calls []fakeprovider.Call, b behaviour) {
	t.Helper()
	var faults, answers int
	for _, call := range calls {
		switch call.Model {
		case b.fault:
			faults++
		case b.then:
			answers++
		}
	}
	if answers < 2 || faults < answers {
		t.Errorf("%d answers behind %d faults, want two at least and no fewer faults: %+v", answers, faults, calls)
	}
}

// checkBrokenOnce looks for an answer that broke after it had begun, which is the
// agent's to repeat, and the two of the task.
func checkBrokenOnce(t *testing.T, calls []fakeprovider.Call) {
	t.Helper()
	var outcomes []string
	for _, call := range calls {
		outcomes = append(outcomes, call.Outcome)
	}
	if want := []string{"words:8+cut:2:rst", "words:8", "words:8"}; !slices.Equal(outcomes, want) {
		t.Errorf("the provider was called for %v, want %v", outcomes, want)
	}
}

// TestClaudeCode_P7 gives Claude Code a file to read (P7, P11).
func TestClaudeCode_P7(t *testing.T) {
	installFromNPM(t, "agents")
	g := startGateway(t)
	for _, to := range []string{"anthropic", "openai", "gemini"} {
		t.Run("over "+to, func(t *testing.T) {
			g.fake.Reset()
			claudeCode(t, g, to+"/marked")
			checkWalks(t, g.fake.Ledger().Calls, behaviours["marked"])
		})
	}
	t.Run("a stream that breaks", func(t *testing.T) {
		g.fake.Reset()
		claudeCode(t, g, "breaks-once")
		checkBrokenOnce(t, g.fake.Ledger().Calls)
	})
}

// claudeCode runs the task and looks at what is printed.
func claudeCode(t *testing.T, g *gateway, model string) {
	t.Helper()
	wrapper, err := filepath.Abs("agents/node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkshop(t)
	arguments, _ := json.Marshal(map[string]string{"file_path": filepath.Join(w.dir, noteName)}) // strings alone
	printed := w.run(t, []string{
		"ANTHROPIC_BASE_URL=" + g.url, "ANTHROPIC_API_KEY=" + g.key,
		"ANTHROPIC_MODEL=" + model, "ANTHROPIC_DEFAULT_HAIKU_MODEL=plain",
		"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}, "node", wrapper, "-p", task("Read", string(arguments)), "--output-format", "json", "--allowedTools", "Read")
	var result struct {
		IsError  bool `json:"is_error"`
		Result   string
		NumTurns int `json:"num_turns"`
		Usage    struct {
			InputTokens  int `json:"input_tokens"`
			OutputTokens int `json:"output_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(printed), &result); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	if result.IsError || result.Result != noteSays || result.NumTurns != 2 || result.Usage.InputTokens < 1 || result.Usage.OutputTokens < 1 {
		t.Errorf("%s", printed)
	}
}

// functionsOnly leaves Codex the tools that every dialect has. By itself it also offers
// a search that runs at the provider and tools in a namespace, which only another
// Responses provider understands: the others would be skipped (P5).
const functionsOnly = `web_search = "disabled"
features.multi_agent = false
`

// codexConfig makes a gateway the only provider that Codex knows.
func codexConfig(url, model, settings string) string {
	return fmt.Sprintf(`model = %q
model_provider = "sluice"
%s
[model_providers.sluice]
name = "Sluice"
base_url = %q
env_key = "SLUICE_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 1
`, model, settings, url+"/v1")
}

// TestCodex_P7 gives the Codex CLI a file to read (P7, P11).
func TestCodex_P7(t *testing.T) {
	installFromNPM(t, "agents")
	g := startGateway(t)
	for _, c := range []struct{ name, model, settings string }{
		{"with all its tools", "codex", ""},
		{"over openai", "openai/marked", functionsOnly},
		{"over anthropic", "anthropic/marked", functionsOnly},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.fake.Reset()
			codex(t, g, c.model, c.settings)
			checkWalks(t, g.fake.Ledger().Calls, behaviours["marked"])
		})
	}
	t.Run("a stream that breaks", func(t *testing.T) {
		g.fake.Reset()
		codex(t, g, "breaks-once", functionsOnly)
		checkBrokenOnce(t, g.fake.Ledger().Calls)
	})
}

// codex runs the task and looks at what is printed.
func codex(t *testing.T, g *gateway, model, settings string) {
	t.Helper()
	program, err := filepath.Abs("agents/node_modules/@openai/codex/bin/codex.js")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkshop(t)
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte(codexConfig(g.url, model, settings)), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := w.run(t, []string{"CODEX_HOME=" + w.home, "SLUICE_KEY=" + g.key},
		// The command that it is told to run is the test's own; the agent's sandbox needs
		// rights that a container seldom gives.
		"node", program, "exec", "--skip-git-repo-check", "--json", "--dangerously-bypass-approvals-and-sandbox",
		task("exec_command", `{"cmd":"cat `+noteName+`"}`))
	checkCodex(t, printed)
}

// checkCodex reads the events that Codex prints, one a line.
func checkCodex(t *testing.T, printed string) {
	t.Helper()
	var last, said string
	var commands, tokens int
	for line := range strings.Lines(printed) {
		var event struct {
			Type string
			Item struct{ Type, Text string }
			// Usage is the turn's.
			Usage struct {
				InputTokens  int `json:"input_tokens"`
				OutputTokens int `json:"output_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		last, tokens = event.Type, min(event.Usage.InputTokens, event.Usage.OutputTokens)
		switch {
		case event.Type != "item.completed":
		case event.Item.Type == "command_execution":
			commands++
		case event.Item.Type == "agent_message":
			said = event.Item.Text
		}
	}
	if last != "turn.completed" || said != noteSays || commands != 1 || tokens < 1 {
		t.Errorf("%s", printed)
	}
}
