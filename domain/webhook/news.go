package webhook

import (
	"strconv"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/billing"
	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/circuit"
	"github.com/sluice-gateway/sluice/domain/reconciliation"
	"github.com/sluice-gateway/sluice/domain/request"
)

// News is something that webhooks are told.
type News struct {
	Type catalog.WebhookEvent
	// Tenant is the organization that it is about; empty for none.
	Tenant string
	// Data is one of the structs of this package.
	Data any
	// Once is set for what is told a single time although the log says it often: a
	// webhook that was told under this name is not told again. Until is when the name
	// may be forgotten; zero is never.
	Once  string
	Until time.Time
}

// CircuitOpened says that a worker stopped calling a route, an endpoint or with a
// credential, until it tries again. Failure and Status are what the last call ended in.
type CircuitOpened struct {
	Circuit
	Failure string    `json:"failure,omitempty"`
	Status  int       `json:"status,omitempty"`
	Until   time.Time `json:"until"`
}

// CircuitClosed says that the worker calls it again.
type CircuitClosed struct {
	Circuit
}

// Circuit names one. Workers have circuits of their own: the same one may open on
// several.
type Circuit struct {
	// ID is the same for the opening and the closing.
	ID         string `json:"circuit"`
	Kind       string `json:"kind"`
	Provider   string `json:"provider"`
	Model      string `json:"model,omitempty"`
	Deployment string `json:"deployment,omitempty"`
	// Credential is the id of a key of the pool, never the key.
	Credential string `json:"credential,omitempty"`
	Worker     string `json:"worker"`
}

// Budget is a limit and what was used of it: its amounts are nano-USD, tokens or
// requests, by the budget's unit.
type Budget struct {
	Scope string `json:"scope"`
	// Of is whose limit it is: the id of the key that was refused, or the model that was
	// asked for; absent for the organization's own.
	Of            string `json:"of,omitempty"`
	LimitNanoUSD  *int64 `json:"limit_nanousd,omitempty"`
	UsedNanoUSD   *int64 `json:"used_nanousd,omitempty"`
	LimitTokens   *int64 `json:"limit_tokens,omitempty"`
	UsedTokens    *int64 `json:"used_tokens,omitempty"`
	LimitRequests *int64 `json:"limit_requests,omitempty"`
	UsedRequests  *int64 `json:"used_requests,omitempty"`
	// ResetsAt is the end of the window; absent for a total, which never ends.
	ResetsAt string `json:"resets_at,omitempty"`
}

// Exhaustion is a limit that refused a request.
type Exhaustion struct{ Budget }

// Threshold is a limit whose use has reached its soft threshold.
type Threshold struct {
	// ID is the limit's in the configuration.
	ID string `json:"budget"`
	// Window is 2026-11-30, 2026-11 or total.
	Window string `json:"window"`
	Budget
	ThresholdNanoUSD  *int64 `json:"threshold_nanousd,omitempty"`
	ThresholdTokens   *int64 `json:"threshold_tokens,omitempty"`
	ThresholdRequests *int64 `json:"threshold_requests,omitempty"`
}

// AliasDegraded says that nothing fits an alias any more (N2).
type AliasDegraded struct {
	Alias string `json:"alias"`
}

// BillClosed is a bill that will not change any more (M14).
type BillClosed struct {
	Period string `json:"period"`
	request.Amounts
	UnknownAttempts int64 `json:"unknown_attempts"`
	Lines           int   `json:"lines"`
}

// ReconciliationDrift is a check that found something beside the log that is not what the
// log says.
type ReconciliationDrift struct {
	Reconciliation string `json:"reconciliation"`
	Check          string `json:"check"`
	// Compared is how many things were, and Drifted how many of them differ, as far as
	// they were counted.
	Compared int64 `json:"compared"`
	Drifted  int64 `json:"drifted"`
}

// ProjectionStalled says that a read model does not follow the log. Shard and Position
// name the event that it cannot pass, where that is why.
type ProjectionStalled struct {
	Projection string    `json:"projection"`
	Since      time.Time `json:"since"`
	Shard      *int16    `json:"shard,omitempty"`
	Position   *int64    `json:"position,omitempty"`
}

// ProjectionRecovered says that it follows again.
type ProjectionRecovered struct {
	Projection string    `json:"projection"`
	Since      time.Time `json:"since"`
}

// Ping is sent when somebody asks for it.
type Ping struct {
	Webhook string `json:"webhook"`
}

// TypePing is the type of a Ping; no webhook can ask for it or refuse it.
const TypePing catalog.WebhookEvent = "ping"

// Of is the news in an event of the log, if it is any. stream is the event's, worker
// wrote it. A refusal in the middle of a walk is not known here, because its event does
// not name the organization: see Exhausted.
func Of(e any, stream, worker string) (News, bool) {
	switch e := e.(type) {
	case circuit.CircuitOpened:
		// A probe that failed opens the same circuit again: it was never closed.
		if e.Trips > 1 {
			return News{}, false
		}
		return News{Type: catalog.HookCircuitOpened, Data: CircuitOpened{
			Circuit: circuitOf(e.Name, worker), Failure: string(e.Cause.Class), Status: e.Cause.Status, Until: e.Until.UTC(),
		}}, true
	case circuit.CircuitClosed:
		return News{Type: catalog.HookCircuitClosed, Data: CircuitClosed{circuitOf(e.Name, worker)}}, true
	case catalog.AliasDegraded:
		return News{Type: catalog.HookAliasDegraded, Tenant: e.Tenant, Data: AliasDegraded{Alias: e.Name}}, true
	case billing.BillClosed:
		return News{Type: catalog.HookBillClosed, Tenant: e.Tenant, Data: BillClosed{
			Period: e.Period, Amounts: e.Amounts, UnknownAttempts: e.UnknownAttempts, Lines: e.Lines,
		}}, true
	case request.RequestRefused:
		return Exhausted(e.Tenant, e.Refusal)
	case reconciliation.CheckCompleted:
		if e.Result != reconciliation.Differs {
			return News{}, false
		}
		return News{Type: catalog.HookReconciliationDrift, Data: ReconciliationDrift{
			Reconciliation: strings.TrimPrefix(stream, reconciliation.StreamKind+"/"), Check: string(e.Check),
			Compared: e.Compared, Drifted: e.Drifted,
		}}, true
	case request.BudgetThresholdReached:
		return reached(e, stream)
	}
	return News{}, false
}

func circuitOf(n circuit.Name, worker string) Circuit {
	return Circuit{
		ID: string(n.Kind) + "/" + n.Key, Kind: string(n.Kind), Provider: n.Provider, Model: n.Model,
		Deployment: n.Deployment, Credential: n.Credential, Worker: worker,
	}
}

// Exhausted is a refusal for want of budget, which is news once in a window: the
// thousand refusals behind the first say the same. A limit that was raised and is
// reached again is news again.
func Exhausted(tenant string, r request.Refusal) (News, bool) {
	if !ranOut(r) || tenant == "" {
		return News{}, false
	}
	until, _ := time.Parse(time.RFC3339, r.Resets) // zero for a total
	shown := r.Of
	if r.Masked {
		shown = ""
	}
	return News{
		Type: catalog.HookBudgetExhausted, Tenant: tenant,
		Data: Exhaustion{budgetOf(r.Scope, shown, r.Unit, r.Limit, r.Used, r.Resets)},
		Once: strings.Join([]string{
			string(catalog.HookBudgetExhausted), tenant, r.Scope, r.Of, r.Unit, strconv.FormatInt(r.Limit, 10), r.Resets,
		}, "/"),
		Until: until.UTC(),
	}, true
}

// ranOut reports whether a limit has nothing left for longer than a rate has: one of
// money, and of requests and tokens that of a day, a month or in total.
func ranOut(r request.Refusal) bool {
	switch r.Code {
	case string(request.CodeInsufficientQuota):
		return true
	case string(request.CodeRateLimitExceeded):
		return r.Per == string(catalog.PerDay) || r.Per == string(catalog.PerMonth)
	}
	return false
}

// reached leaves out minutes and hours: such a limit is a rate, which may be near its
// threshold all day.
func reached(e request.BudgetThresholdReached, stream string) (News, bool) {
	if strings.Contains(e.Window, "T") {
		return News{}, false
	}
	of := counted(e, stream)
	if e.Masked {
		e.Budget, of = e.Scope, ""
	}
	t := Threshold{
		ID: e.Budget, Window: e.Window, Budget: budgetOf(e.Scope, of, e.Unit, e.Limit, e.Used, e.Resets),
	}
	switch e.Unit {
	case "tokens":
		t.ThresholdTokens = &e.Threshold
	case "requests":
		t.ThresholdRequests = &e.Threshold
	default:
		t.ThresholdNanoUSD = &e.Threshold
	}
	return News{Type: catalog.HookBudgetThreshold, Tenant: e.Tenant, Data: t}, true
}

// counted is whose counter a threshold's stream names: threshold/org/TENANT/SCOPE/OF/UNIT
// and the window. OF may hold slashes.
func counted(e request.BudgetThresholdReached, stream string) string {
	rest, ok := strings.CutPrefix(stream, "threshold/org/"+e.Tenant+"/"+e.Scope+"/")
	if !ok {
		return ""
	}
	unit, _, _ := strings.Cut(strings.TrimPrefix(e.Unit, "nano"), "/")
	i := strings.LastIndex(rest, "/"+unit+"/")
	return rest[:max(i, 0)]
}

func budgetOf(scope, of, unit string, limit, used int64, resets string) Budget {
	b := Budget{Scope: scope, Of: of, ResetsAt: resets}
	switch unit {
	case "tokens":
		b.LimitTokens, b.UsedTokens = &limit, &used
	case "requests":
		b.LimitRequests, b.UsedRequests = &limit, &used
	default:
		b.LimitNanoUSD, b.UsedNanoUSD = &limit, &used
	}
	return b
}
