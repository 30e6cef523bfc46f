package docs_test

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/failure"
)

// causes say what a class stands for. Everything else of its row is the code's.
var causes = map[failure.Class]string{
	failure.ConnectError:       "nobody was reached: refused, no DNS, no connection within 5 s",
	failure.TimeoutFirstByte:   "the provider took the request and sent nothing in time",
	failure.TimeoutAttempt:     "it began and then fell silent, or had no output in time",
	failure.ServerError:        "it answered 5xx",
	failure.StreamTruncated:    "the stream or body ended without its end",
	failure.StreamErrorEvent:   "an error event inside a 200",
	failure.Throttled:          "\"not now\": most 429, and what means the same",
	failure.ProviderAuth:       "401 or 403 on the operator's credential",
	failure.ProviderQuota:      "the provider's account ran dry, whatever the status",
	failure.DeploymentGone:     "the provider does not have this deployment",
	failure.BadPayload:         "a 200 whose body is not the protocol",
	failure.EmptyCompletion:    "a proper answer without any output",
	failure.BaseURLRefused:     "the base URL resolved into the own network, where no operator has opened that host: nobody was called",
	failure.InvalidRequest:     "any other 4xx: the caller's request",
	failure.ContextLength:      "the prompt is too long for this deployment",
	failure.QuotaExceeded:      "the caller's own budget is used up",
	failure.ContentPolicy:      "the provider's policy turned the prompt down",
	failure.Refusal:            "the model refused",
	failure.ClientCancelled:    "the client left",
	failure.DeadlineExceeded:   "the request's own time was over",
	failure.CustomerCredential: "the customer's own provider key was rejected",
}

// failureClasses is domain/failure's table, beside what the caller gets, which is
// read from the scenario outline that proves it.
func failureClasses(t *testing.T) string {
	answers := provedAnswers(t)
	moves := map[failure.Move]string{
		failure.Stop: "no", failure.Another: "yes",
		failure.AnotherIfLarger: "if one has a larger window", failure.AnotherIfOptedIn: "if `failover_on_refusal`",
	}
	health := map[failure.Health]string{
		failure.NoHealth: "none", failure.Operational: "counts towards opening",
		failure.OpensAtOnce: "opens at once", failure.ThrottleWindow: "opens a throttle window",
	}
	var rows [][]string
	for _, c := range failure.Classes() {
		if causes[c] == "" {
			t.Errorf("say in causes what %s stands for", c)
		}
		traits := failure.Of(c)
		rows = append(rows, []string{
			code(string(c)), causes[c], yes(traits.SameRoute), moves[traits.Move], health[traits.Health],
			yes(traits.MaybeBilled), answers[c],
		})
	}
	return table([]string{"class", "what happened", "same route again", "another route", "circuit", "may have been billed", "the caller gets, when nothing else serves"}, rows)
}

// provedAnswers reads the rows of the outline in features/failures.feature.
func provedAnswers(t *testing.T) map[failure.Class]string {
	t.Helper()
	answers := map[failure.Class]string{}
	var columns []string
	for line := range strings.Lines(read(t, filepath.Join("..", "features", "failures.feature"))) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		if cells[0] == "class" {
			columns = cells
			continue
		}
		cell := func(name string) string { return cells[slices.Index(columns, name)] }
		answers[failure.Class(cells[0])] = cell("status") + " " + code(cell("code"))
	}
	for _, c := range failure.Classes() {
		if answers[c] == "" {
			t.Errorf("features/failures.feature has no row for %s", c)
		}
	}
	return answers
}

// occasions say when a code is given. Those that begin with "later" are in the
// table for clients to know, and this release never gives them.
var occasions = map[apierror.Code]string{
	apierror.InvalidAPIKey:                "no key, or one that is unknown, revoked or expired",
	apierror.Forbidden:                    "the key lacks the scope of the endpoint",
	apierror.ModelNotFound:                "no model of this name",
	apierror.AliasUnresolvable:            "the name is an alias that leads to no model",
	apierror.InvalidRequest:               "the body, a header or a parameter cannot be read; an address points into a private network; or the provider said so, with its own status and message",
	apierror.CapabilityUnavailable:        "every rung lacks something that the request needs",
	apierror.ContextLengthExceeded:        "the request fits no rung's declared window, or the provider said so and no larger one is left",
	apierror.RequestTooLarge:              "the body is over 32 MiB, as sent or unpacked",
	apierror.NoRouteAllowed:               "every rung was turned down: this worker holds no credential for it, or its base URL leads into the own network",
	apierror.ClassNotConfigured:           "the traffic class has no chain, nor one to borrow",
	apierror.ChainUnavailable:             "the chain holds nothing that can be called, or is longer than its bounds",
	apierror.InsufficientQuota:            "the organization's budget does not cover the worst case",
	apierror.RateLimitExceeded:            "later: windows of requests and tokens",
	apierror.ProviderThrottled:            "a throttle was returned to the caller, or throttles alone kept every rung from serving",
	apierror.CapacityExhausted:            "later: local capacity",
	apierror.AdmissionTimeout:             "no admission slot came free in time; nothing was called",
	apierror.CustomerCredentialRejected:   "the provider refused the organization's own key; nothing is bought instead",
	apierror.CustomerCredentialQuota:      "the account of the organization's own key is out of funds; nothing is bought instead",
	apierror.UpstreamExhausted:            "every candidate failed; 503 when circuits alone kept all of them from being called",
	apierror.EmptyCompletion:              "the walk ended on an empty answer",
	apierror.UpstreamTruncated:            "the walk ended on a cut answer; in a stream, an error event",
	apierror.AnswerLost:                   "an answer was lost where the model says `lost_answer: stop`",
	apierror.DeadlineExceeded:             "the request's time was over",
	apierror.PriceUnknown:                 "no rung has a known price",
	apierror.IdempotencyConflict:          "the key was used with another body",
	apierror.IdempotencyReplayUnavailable: "the key was used, and this worker does not hold the answer",
	apierror.GatewayUnavailable:           "the log cannot be written, or there is no catalog yet",
	apierror.RevisionConflict:             "the admin API: the configuration has changed since the revision of `If-Match`",
}

// errorCodes is adapters/apierror's table, by status.
func errorCodes(t *testing.T) string {
	codes := apierror.Codes()
	slices.SortFunc(codes, func(a, b apierror.Code) int {
		return cmp.Or(cmp.Compare(apierror.Of(a).Status, apierror.Of(b).Status), cmp.Compare(a, b))
	})
	var rows [][]string
	for _, c := range codes {
		if occasions[c] == "" {
			t.Errorf("say in occasions when %s is given", c)
		}
		row := apierror.Of(c)
		rows = append(rows, []string{code(string(c)), strconv.Itoa(row.Status), code(row.OpenAI), yes(row.Retryable), occasions[c]})
	}
	return table([]string{"code", "HTTP", "`type`", "retryable", "when"}, rows)
}

// configurationWarnings loads the document's own example and lists what `sluice
// apply` says about it.
func configurationWarnings(t *testing.T) string {
	file, err := config.Load(strings.NewReader(exampleConfiguration(t)), "the example of configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, w := range file.Warnings {
		lines = append(lines, "- "+w.Text)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// exampleConfiguration is the first YAML block of configuration.md.
func exampleConfiguration(t *testing.T) string {
	t.Helper()
	_, rest, found := strings.Cut(read(t, "configuration.md"), "```yaml\n")
	example, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("configuration.md has no example")
	}
	return example
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// optional says whether a JSON tag leaves a zero out.
func optional(tag string) bool {
	return strings.Contains(tag, ",omitempty") || strings.Contains(tag, ",omitzero")
}
