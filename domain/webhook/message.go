package webhook

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-gateway/sluice/domain/catalog"
)

// message is what is posted.
type message struct {
	ID   uuid.UUID            `json:"id"`
	Type catalog.WebhookEvent `json:"type"`
	At   time.Time            `json:"at"`
	// Tenant is null for what is about no organization.
	Tenant *string `json:"tenant"`
	Data   any     `json:"data"`
}

// Body is the message about some news to one webhook, under the id of the delivery. at
// is when it happened. It holds no content of any request (E10).
func Body(id uuid.UUID, at time.Time, n News) []byte {
	m := message{ID: id, Type: n.Type, At: at.UTC(), Data: n.Data}
	if n.Tenant != "" {
		m.Tenant = &n.Tenant
	}
	body, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("webhook: %T cannot be encoded: %v", n.Data, err)) // plain structs: a programming error
	}
	return body
}

// ids is the name space of deliveries' ids; it never changes.
var ids = uuid.MustParse("6f0f4f0e-7f0c-5a0e-9d55-0b1a5d1c3a57")

// ID is the id of what one webhook is told about one thing: the same whenever it is
// made, and so whenever it is sent. source names the thing: see FromLog.
func ID(source, tenant, webhook string) uuid.UUID {
	return uuid.NewSHA1(ids, []byte(source+"\x00"+tenant+"\x00"+webhook))
}

// FromLog names an event of the log.
func FromLog(shard int16, position int64) string { return fmt.Sprintf("log/%d/%d", shard, position) }
