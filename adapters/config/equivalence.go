package config

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-gateway/sluice/domain/catalog"
	"github.com/sluice-gateway/sluice/domain/equivalence"
	"github.com/sluice-gateway/sluice/domain/event"
	"github.com/sluice-gateway/sluice/eventstore"
	live "github.com/sluice-gateway/sluice/projections/catalog"
)

// StoreEvidence writes what a check found (N24) and returns the hash that a
// certification cites. Whatever the model's revision is: a check changes nothing.
func StoreEvidence(ctx context.Context, log Log, e equivalence.Evidence, by eventstore.Meta, now time.Time) (hash string, err error) {
	hash = e.Hash()
	stream := catalog.ObjectID{Kind: catalog.KindModel, Name: e.Model}.Stream()
	_, err = log.AppendAll(ctx, []eventstore.Append{
		write(stream, eventstore.AnyVersion, by, now, catalog.EquivalenceChecked{Model: e.Model, Hash: hash, Evidence: e}),
	})
	return hash, err
}

// EquivalenceCheck is a check that was stored.
type EquivalenceCheck struct {
	Position int64                `json:"position"`
	At       time.Time            `json:"at"`
	Actor    string               `json:"actor"`
	Hash     string               `json:"hash"`
	Evidence equivalence.Evidence `json:"evidence"`
}

// EquivalenceChecks are those of one model, oldest first.
func EquivalenceChecks(ctx context.Context, log StreamLog, model string) ([]EquivalenceCheck, error) {
	recorded, err := readStream(ctx, log, catalog.ObjectID{Kind: catalog.KindModel, Name: model}.Stream())
	if err != nil {
		return nil, err
	}
	list := []EquivalenceCheck{}
	for _, rec := range recorded {
		if e, ok := checkOf(rec); ok {
			list = append(list, EquivalenceCheck{
				Position: rec.Position, At: rec.RecordedAt.UTC(), Actor: rec.Meta.Actor, Hash: e.Hash, Evidence: e.Evidence,
			})
		}
	}
	return list, nil
}

func checkOf(rec eventstore.Recorded) (catalog.EquivalenceChecked, bool) {
	e, err := event.Decode(rec.Type, rec.Version, rec.Data)
	if err != nil {
		return catalog.EquivalenceChecked{}, false
	}
	check, ok := e.(catalog.EquivalenceChecked)
	return check, ok
}

// Certification is an operator's word that a model's pool is one model, and the check
// that it rests on (N15).
type Certification struct {
	Model string
	By    string
	// Evidence is the hash of a check.
	Evidence string
	// AcceptDoubts certifies although the check does not show it.
	AcceptDoubts bool
}

// DoubtError refuses a certification whose evidence does not show what it says.
// Nothing was written.
type DoubtError struct {
	Model  string
	Doubts []string
}

func (e *DoubtError) Error() string {
	return fmt.Sprintf("model %s is not certified: %s", e.Model, strings.Join(e.Doubts, "; "))
}

// Certify writes a certification. The doubts are those that were accepted. The error is
// an *UnknownError for a model that is not there, a *DoubtError, or Change's.
func Certify(ctx context.Context, log Log, worker *live.Live, c Certification, by eventstore.Meta, now time.Time) (plan Plan, doubts []string, err error) {
	plan, err = Change(ctx, log, worker, by, now, func(state *catalog.State) (catalog.Objects, error) {
		want := state.Objects()
		i := slices.IndexFunc(want.Models, func(m catalog.Model) bool { return m.Slug == c.Model })
		if i < 0 {
			return want, &UnknownError{Kind: "model", ID: c.Model}
		}
		m := &want.Models[i]
		m.Equivalence = &catalog.Equivalence{CertifiedBy: c.By, On: now.UTC().Format(time.DateOnly), Evidence: c.Evidence}
		doubts = state.Doubts(catalog.Members(want), *m)
		if len(doubts) > 0 && !c.AcceptDoubts {
			return want, &DoubtError{Model: c.Model, Doubts: doubts}
		}
		return want, nil
	})
	return plan, doubts, err
}

// Doubts warns of certifications whose evidence does not show, as far as this
// installation knows, that the file's pools answer alike (N15).
func (f *File) Doubts(state *catalog.State) []Warning {
	w := collector{line: func(slug string) int { return f.cited[slug] }, byText: map[string]*Warning{}}
	members := catalog.Members(f.Objects)
	for _, m := range f.Objects.Models {
		for _, doubt := range state.Doubts(members, m) {
			w.when(true, m.Slug, "models.equivalence.evidence: "+doubt)
		}
	}
	return w.sorted()
}

// cited is where in a file each model's evidence stands.
func cited(o catalog.Objects, line func(path string) int) map[string]int {
	lines := map[string]int{}
	for i, m := range o.Models {
		if m.Equivalence != nil {
			lines[m.Slug] = line(fmt.Sprintf("models[%d].equivalence.evidence", i))
		}
	}
	return lines
}
