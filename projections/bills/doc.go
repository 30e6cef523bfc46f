// Package bills is what an organization owes for a month, and why (M14).
//
// A settlement is one row of the ledger, keyed by its attempt; lines are sums over
// the ledger by model, deployment, credential owner and fallback kind (M11). So a
// line can be traced to its attempts, and a settlement that is read twice counts
// once. The five amounts are never one (M7), and attempts whose usage nobody knows
// are counted apart (D2).
package bills
