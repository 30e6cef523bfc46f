package responses

import (
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-gateway/sluice/adapters/apierror"
	"github.com/sluice-gateway/sluice/adapters/dialect/chat"
)

// Error is a whole error reply, in the shape that OpenAI's dialects share.
func (Inbound) Error(e *apierror.Error) (int, http.Header, []byte) { return chat.Inbound{}.Error(e) }

// writeError is the error of a response that failed. Codex reads the time to wait out
// of the words "try again in 2s" and nowhere else.
func writeError(o *object, e *apierror.Error) {
	o.open("error", '{')
	o.text("code", string(e.Code))
	o.text("message", e.Text()+waiting(e.RetryAfter))
	o.text("type", apierror.Of(e.Code).OpenAI)
	o.maybe("request_id", e.RequestID)
	o.flag("retryable", e.Retryable)
	o.close('}')
}

func waiting(d time.Duration) string {
	d = min(d, apierror.MaxRetryAfter)
	if d <= 0 {
		return ""
	}
	return " Please try again in " + strconv.FormatFloat(d.Round(time.Millisecond).Seconds(), 'f', -1, 64) + "s."
}
