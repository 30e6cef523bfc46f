// Package registry lists the dialects that providers are spoken to in, one for each
// protocol of sluice.yaml.
package registry

import (
	"github.com/sluice-gateway/sluice/adapters/dialect"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
	"github.com/sluice-gateway/sluice/adapters/dialect/converse"
	"github.com/sluice-gateway/sluice/adapters/dialect/embeddings"
	"github.com/sluice-gateway/sluice/adapters/dialect/gemini"
	"github.com/sluice-gateway/sluice/adapters/dialect/messages"
	"github.com/sluice-gateway/sluice/adapters/dialect/responses"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// Outbound is what a worker calls providers with.
func Outbound() map[catalog.Protocol]dialect.Outbound {
	return map[catalog.Protocol]dialect.Outbound{
		catalog.OpenAI:          embeddings.Outbound{Outbound: chat.Outbound{}},
		catalog.OpenAIResponses: responses.Outbound{},
		catalog.Anthropic:       messages.Outbound{},
		catalog.Bedrock:         converse.Outbound{},
		catalog.Gemini:          gemini.Outbound{Tokens: gemini.NewTokens()},
	}
}
