//go:build ignore

// Writes o200k_base.ranks from the vocabulary of github.com/tiktoken-go/tokenizer:
// every token in the order of its rank, one byte of length before it.
package main

import (
	"log"
	"os"

	"github.com/tiktoken-go/tokenizer/codec"
)

// ordinaryTokens is how many ranks o200k_base has; special tokens come after.
const ordinaryTokens = 199_998

func main() {
	c := codec.NewO200kBase()
	var out []byte
	for id := range uint(ordinaryTokens) {
		token, err := c.Decode([]uint{id})
		if err != nil {
			log.Fatal(err)
		}
		if len(token) > 255 {
			log.Fatalf("rank %d has %d bytes", id, len(token))
		}
		out = append(append(out, byte(len(token))), token...)
	}
	if err := os.WriteFile("o200k_base.ranks", out, 0o644); err != nil {
		log.Fatal(err)
	}
}
