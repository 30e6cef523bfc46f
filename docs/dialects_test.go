package docs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/domain/neutral"
)

// dialectNames are the dialects as the documents call them.
var dialectNames = map[neutral.Dialect]string{
	neutral.Chat: "Chat Completions", neutral.Responses: "Responses", neutral.Messages: "Messages",
	neutral.Converse: "Bedrock Converse", neutral.Generate: "Gemini", neutral.Embeddings: "Embeddings", dialect.Any: "any other",
}

// meanings say what a feature is in a request.
var meanings = map[dialect.Feature]string{
	dialect.SeveralChoices: "`n` above 1",
	dialect.LogProbs:       "log probabilities",
	dialect.AudioInput:     "audio in a message",
	dialect.AudioOutput:    "audio in the answer",
	dialect.ImageURLs:      "an image by its address",
	dialect.DocumentURLs:   "a document by its address",
	dialect.StoredFiles:    "a file that a provider holds, by its id",
	dialect.CustomTools:    "a tool with free text for arguments",
	dialect.AllowedTools:   "a choice among some of the tools",
	dialect.ServerTools:    "a tool that the provider runs itself: search, code, MCP",
	dialect.StoredState:    "a conversation or a container that a provider holds",
	dialect.Background:     "an answer in the background",
	dialect.Vectors:        "embeddings",
}

// dialectFeatures lists what skips a destination, and who can say it.
func dialectFeatures(t *testing.T) string {
	var rows [][]string
	for _, f := range dialect.Features() {
		if meanings[f] == "" {
			t.Errorf("say in meanings what %s is", f)
		}
		var carriers []string
		for _, to := range []neutral.Dialect{neutral.Chat, neutral.Responses, neutral.Messages, neutral.Converse, neutral.Generate} {
			if dialect.Carries(f, "another", to) {
				carriers = append(carriers, dialectNames[to])
			}
		}
		if carriers == nil {
			carriers = []string{"only its own dialect"}
		}
		rows = append(rows, []string{code(string(f)), meanings[f], strings.Join(carriers, ", ")})
	}
	return table([]string{"capability", "what it is in a request", "said by"}, rows)
}

// droppedFields is the table of adapters/dialect, which tests of each dialect walk.
func droppedFields(t *testing.T) string {
	list := slices.Clone(dialect.DroppedTable())
	var rows [][]string
	for _, d := range list {
		if dialectNames[d.From] == "" || dialectNames[d.To] == "" {
			t.Errorf("no name for %s or %s", d.From, d.To)
		}
		rows = append(rows, []string{dialectNames[d.From], dialectNames[d.To], d.Field, d.What})
	}
	return table([]string{"from", "to", "what", "what happens"}, rows)
}
