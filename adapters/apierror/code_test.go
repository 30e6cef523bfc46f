package apierror_test

import (
	"testing"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/domain/request"
)

// TestEveryCodeOfTheWalkHasARow: a code without one would reach the caller as
// gateway_unavailable.
func TestEveryCodeOfTheWalkHasARow(t *testing.T) {
	have := map[apierror.Code]bool{}
	for _, c := range apierror.Codes() {
		have[c] = true
	}
	for _, c := range []request.Code{
		request.CodeInvalidAPIKey, request.CodeForbidden, request.CodeModelNotFound, request.CodeInvalidRequest,
		request.CodeCapabilityUnavailable, request.CodeContextLengthExceeded, request.CodeRequestTooLarge,
		request.CodeNoRouteAllowed, request.CodeChainUnavailable, request.CodeInsufficientQuota,
		request.CodeProviderThrottled, request.CodeUpstreamExhausted, request.CodeEmptyCompletion,
		request.CodeUpstreamTruncated, request.CodeAnswerLost, request.CodeDeadlineExceeded, request.CodePriceUnknown,
		request.CodeCustomerCredentialReject, request.CodeCustomerCredentialQuota, request.CodeGatewayUnavailable,
	} {
		if !have[c] {
			t.Errorf("%s has no row", c)
		}
	}
}
