// Package billing is what a price correction does to a settled attempt, and what is
// said about an organization's bill when its month is over.
//
// The ledger is kept by entries, as accountants do: an attempt's settlement is one,
// and every correction that changes it is another that holds the difference. Nothing
// that was entered is ever rewritten, so what stands in a closed bill stays, and what
// comes later stands in the next one (M14, M15).
package billing
