// Package equivalence judges whether the deployments of a pool answer alike (N24): the
// same small synthetic requests went to all of them, and what is compared is how the
// answers are built and counted, never what they say. It is pure; who calls is
// adapters/equivalence.
package equivalence
