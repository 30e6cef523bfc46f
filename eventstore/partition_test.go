package eventstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/eventstore/pgtest"
)

// requestBornAt is a request's stream as if made at a time.
func requestBornAt(at time.Time, n byte) string {
	var id uuid.UUID
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	id[6], id[8], id[15] = 0x70, 0x80, n
	return "request/" + id.String()
}

// Rules: E7.
func TestMonthIsDetachedExportedAndBroughtBack_E7(t *testing.T) {
	url := pgtest.NewDatabase(t)
	conn := connect(t, url)
	month := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	mustExec(t, conn, `select log_ensure_partition('2026-03-17')`)
	s := openStore(t, Config{URL: url})
	old := requestBornAt(month.AddDate(0, 0, 3), 1)
	mustAppend(t, s, "tenant/acme", 0, 1)
	mustAppend(t, s, old, 0, 2)
	mustAppend(t, s, newRequest(), 0, 1)
	before := readEverything(t, s)

	var export bytes.Buffer
	if n, err := Export(t.Context(), conn, month, &export); err != nil || n != 1 {
		t.Fatalf("exported %d, %v", n, err)
	}
	if err := Detach(t.Context(), conn, month, now); err != nil {
		t.Fatal(err)
	}
	report, err := s.VerifyChain(t.Context(), 0, Head{}, nil)
	if err != nil || report.Unverifiable != 1 || report.Batches != 3 {
		t.Fatalf("without the month: %+v, %v", report, err)
	}
	// A reader does not step over what is away.
	_, err = s.ReadAll(t.Context(), 0, 0, 10)
	if gap, ok := errors.AsType[*GapError](err); !ok || gap.Want != 2 {
		t.Fatalf("read over the gap: %v", err)
	}
	// Somebody removes more than the month.
	mustExec(t, conn, `drop table `+PartitionName(month))
	if n, err := Import(t.Context(), conn, month, &export); err != nil || n != 1 {
		t.Fatalf("imported %d, %v", n, err)
	}
	if err := Attach(t.Context(), conn, month); err != nil {
		t.Fatal(err)
	}
	report, err = s.VerifyChain(t.Context(), 0, Head{}, nil)
	if err != nil || report.Unverifiable != 0 {
		t.Fatalf("with the month back: %+v, %v", report, err)
	}
	if diff := cmp.Diff(before, readEverything(t, s)); diff != "" {
		t.Error(diff)
	}
	// Protected again, and its stream continues.
	if _, err := conn.Exec(t.Context(), `truncate `+PartitionName(month)); err == nil {
		t.Error("the month can be truncated")
	}
	mustAppend(t, s, old, 2, 1)
}

// While a month is away, other events may not go missing unnoticed.
//
// Rules: E9.
func TestDetachedMonthDoesNotHideRemovals_E9(t *testing.T) {
	url := pgtest.NewDatabase(t)
	conn := connect(t, url)
	month := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	mustExec(t, conn, `select log_ensure_partition('2026-03-17')`)
	s := openStore(t, Config{URL: url})
	mustAppend(t, s, requestBornAt(month, 1), 0, 2)
	mustAppend(t, s, newRequest(), 0, 1)
	if err := Detach(t.Context(), conn, month, month.AddDate(0, 2, 0)); err != nil {
		t.Fatal(err)
	}
	mustExec(t, conn, `set session_replication_role = replica`)
	mustExec(t, conn, `delete from log_events where position = 3`)
	_, err := s.VerifyChain(t.Context(), 0, Head{}, nil)
	if broken, ok := errors.AsType[*ChainError](err); !ok || broken.Position != 3 {
		t.Fatalf("got %v", err)
	}
}

// Rules: E7.
func TestMonthInUseIsNotDetached_E7(t *testing.T) {
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for _, month := range []time.Time{now, now.AddDate(0, -1, 0), now.AddDate(0, 1, 0)} {
		if err := Detach(t.Context(), nil, month, now); !errors.Is(err, ErrMonthInUse) {
			t.Errorf("%s: %v", month, err)
		}
	}
}

// A request of a month that nobody made a partition for is written and read; the
// month is then left in the default partition.
//
// Rules: E7.
func TestEventsWithoutMonthAreNotRefused_E7(t *testing.T) {
	url := pgtest.NewDatabase(t)
	s := openStore(t, Config{URL: url})
	future := requestBornAt(time.Date(2031, 5, 5, 0, 0, 0, 0, time.UTC), 1)
	mustAppend(t, s, future, 0, 1)
	var made bool
	err := connect(t, url).QueryRow(t.Context(), `select log_ensure_partition('2031-05-01')`).Scan(&made)
	if err != nil || made {
		t.Fatalf("made %t, %v", made, err)
	}
	mustAppend(t, s, future, 1, 1)
}

// Each kind of stream is born where its partition is, whatever the day.
//
// Rules: E7.
func TestBornIsAFunctionOfTheName_E7(t *testing.T) {
	at := time.Date(2026, 11, 29, 22, 3, 4, 567_000_000, time.UTC)
	for _, c := range []struct {
		stream string
		born   time.Time
		ok     bool
	}{
		{requestBornAt(at, 7), at, true},
		{"tenant/acme", time.Unix(0, 0).UTC(), true},
		{"chain/acme/gpt-4o", time.Unix(0, 0).UTC(), true},
		{"circuit/endpoint/eu", time.Unix(86400, 0).UTC(), true},
		{"bill/acme/2026-11", time.Unix(86400, 0).UTC(), true},
		{"request/" + uuid.NewString(), time.Time{}, false}, // version 4
		{requestBornAt(time.Unix(3600, 0), 1), time.Time{}, false},
		{"request/018f", time.Time{}, false},
		{"tenant", time.Time{}, false},
		{"tenant/", time.Time{}, false},
		{"/x", time.Time{}, false},
		{"tenant/a b", time.Time{}, false},
		{"tenant/a\nb", time.Time{}, false},
		{"tenant/ü", time.Time{}, false},
	} {
		born, err := Born(c.stream)
		if (err == nil) != c.ok || (err != nil && !errors.Is(err, ErrInvalid)) || !born.Equal(c.born) {
			t.Errorf("%q: %s, %v", c.stream, born, err)
		}
	}
}
