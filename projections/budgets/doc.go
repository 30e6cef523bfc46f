// Package budgets makes the budget counters again from the log.
//
// They are the one projection that the append's own transaction keeps (E5), by
// domain/budget.Effects on events it has in its hands. A rebuild has the same
// events as bytes, millions of them, and most say nothing to a budget: Effects
// here reads the three fields that count, of the two types that count, and skips
// the rest undecoded. That the two agree is a property test, and at run time it is
// what comparing the counters finds.
package budgets
