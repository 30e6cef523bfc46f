package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-gateway/sluice/eventstore"
	"github.com/sluice-gateway/sluice/projections"
	"github.com/sluice-gateway/sluice/projections/views"
)

// verified is the JSON of `sluice verify`.
type verified struct {
	OK bool `json:"ok"`
	views.Report
	Chain *verifiedChain `json:"chain,omitempty"`
}

type verifiedChain struct {
	OK      bool  `json:"ok"`
	Shard   int16 `json:"shard"`
	Batches int64 `json:"batches"`
	Events  int64 `json:"events"`
	// Head can be kept elsewhere and given back with --head.
	Head string `json:"head"`
	// Unverifiable batches lie in detached partitions.
	Unverifiable int64  `json:"unverifiable_batches"`
	Broken       string `json:"broken,omitempty"`
}

func newVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove the read models, and with --chain the log itself",
		Long: "Checks that every request in the log lived a possible life, and makes every read\n" +
			"model again beside the live one to compare digests. With --chain it recomputes the\n" +
			"hash over the whole log and finds any event that was changed, removed or inserted; a\n" +
			"head kept elsewhere and given with --head also finds a log that was cut off or\n" +
			"written anew. Traffic goes on meanwhile.",
		Example: "  sluice verify\n" +
			"  sluice verify --chain --output json\n" +
			"  sluice verify --chain --head 0:1234:9f86d081884c7d65...",
		Args: cobra.NoArgs,
	}
	output := addOutput(cmd)
	chain := cmd.Flags().Bool("chain", false, "verify the log's hash chain too")
	head := cmd.Flags().String("head", "", "a head that an earlier verification printed, shard:position:hash")
	cmd.RunE = running(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		known, err := parseHead(*head)
		if err != nil {
			return err
		}
		result, err := verify(ctx, newProgress(cmd), *chain || *head != "", known)
		if err != nil {
			return err
		}
		if *output == outputJSON {
			err = printJSON(cmd.OutOrStdout(), result)
		} else {
			printVerified(cmd.OutOrStdout(), result)
		}
		if err == nil && !result.OK {
			return errSilent
		}
		return err
	})
	return cmd
}

func verify(ctx context.Context, shown *progress, chain bool, known eventstore.Head) (result verified, err error) {
	err = withKeeper(ctx, func(ctx context.Context, log *eventstore.Store, k *views.Keeper) (err error) {
		defer shown.done()
		result.Report, err = k.Verify(ctx, time.Now(), func(at projections.Progress) {
			shown.show("verifying %s: %d of %d events", at.Projection, at.Done, at.Total)
		})
		result.OK = result.Report.OK()
		if err != nil || !chain {
			return err
		}
		c, err := verifyChain(ctx, log, known, shown)
		result.Chain, result.OK = &c, result.OK && c.OK
		return err
	})
	return result, err
}

func verifyChain(ctx context.Context, log *eventstore.Store, known eventstore.Head, shown *progress) (verifiedChain, error) {
	report, err := log.VerifyChain(ctx, 0, known, func(position int64) {
		shown.show("verifying the chain: %d events", position)
	})
	c := verifiedChain{
		OK: err == nil, Batches: report.Batches, Events: report.Head.Position,
		Head: formatHead(report.Head), Unverifiable: report.Unverifiable,
	}
	if broken, ok := errors.AsType[*eventstore.ChainError](err); ok {
		c.Broken = fmt.Sprintf("at position %d: %s", broken.Position, broken.Reason)
		err = nil
	}
	return c, err
}

func printVerified(w io.Writer, v verified) {
	p := newPaint(w)
	line := func(good bool, format string, args ...any) {
		word := p.green("ok  ")
		if !good {
			word = p.red("fail")
		}
		fmt.Fprintf(w, word+"  "+format+"\n", args...)
	}
	for _, l := range v.Lives {
		line(l.OK(), "requests' lives: %d requests in %d events, %d open, %d impossible", l.Requests, l.Events, l.Open, l.Found)
		for _, one := range l.Violations {
			fmt.Fprintf(w, "        %s at position %d: %s\n", one.Stream, one.Position, one.Reason)
		}
	}
	for _, c := range v.Counters {
		line(c.OK(), "%s: %d counters from %d events%s", views.Budgets, c.Counters, c.Events, remedy(c.OK(), views.Budgets))
	}
	for _, one := range v.Views {
		line(one.OK(), "%s: %d rows from %d events%s", one.Projection, one.Live.Rows, one.Events, remedy(one.OK(), one.Projection))
		for _, d := range one.Drifts {
			fmt.Fprintf(w, "        %s %s: %s\n", d.Table, d.Key, d.Is)
		}
	}
	for _, bill := range v.ChangedBills {
		line(false, "closed bill %s is not what was said when it was closed", bill)
	}
	switch c := v.Chain; {
	case c == nil:
	case c.OK:
		line(true, "chain: %d events in %d batches, head %s", c.Events, c.Batches, c.Head)
	default:
		line(false, "chain: broken %s", c.Broken)
	}
}

// remedy says what to do about a read model that is not what the log adds up to.
func remedy(good bool, projection string) string {
	if good {
		return ""
	}
	return "; the log adds up to something else: run `sluice rebuild " + projection + "`"
}

// A head is printed as shard:position:hash.
func formatHead(h eventstore.Head) string {
	return fmt.Sprintf("%d:%d:%s", h.Shard, h.Position, h.Hash)
}

func parseHead(text string) (head eventstore.Head, err error) {
	if text == "" {
		return head, nil
	}
	bad := usagef("--head %q is not shard:position:hash, as an earlier `sluice verify --chain` printed it", text)
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[0] != "0" {
		return head, bad
	}
	head.Position, err = strconv.ParseInt(parts[1], 10, 64)
	hash, hexErr := hex.DecodeString(parts[2])
	if err != nil || hexErr != nil || len(hash) != len(head.Hash) {
		return head, bad
	}
	head.Hash = eventstore.Hash(hash)
	return head, nil
}
