// Package projections turns the log into read models.
//
// The log is the truth; every table here may be thrown away and is made again
// from the log alone, to the same bytes (E4). A Projection says which events it
// wants and how a batch of them changes its tables; everything else is the same
// for all of them and lives here:
//
//   - the Runner advances them behind live traffic, one worker at a time for each,
//     and moves the checkpoint in the transaction that moves the view, so that a
//     crash between the two is impossible;
//   - Rebuild makes a view again beside the live one and switches in one
//     transaction;
//   - Verify does the same without switching, and compares.
//
// Budget counters are the exception (E5): the append's own transaction keeps them,
// and package budgets is only how they are made again.
//
// A nudge after a commit wakes the Runner early. It carries nothing but the news
// that there is news: what is read is the log, by position, and a lost nudge costs
// one poll.
package projections
