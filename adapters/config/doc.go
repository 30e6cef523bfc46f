// Package config is the way between sluice.yaml and the catalog (C13): Load reads
// the file or says everything that is wrong with it, Diff tells what it would
// change, Apply writes that as events, Export writes the file back. CreateKey and
// RevokeKey are the one part of the configuration that no file holds.
package config
