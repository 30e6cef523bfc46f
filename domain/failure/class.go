// Package failure holds the classes of failure and what each one allows. The
// class alone decides: may another rung be tried, may the same rung be tried
// again, which health record is touched, what the caller gets (W1). This file is
// the whole table.
package failure

// Class is what went wrong with an attempt, or with the request around it.
type Class string

// The classes of W2. Every failure gets exactly one.
const (
	ConnectError     Class = "connect_error"
	TimeoutFirstByte Class = "timeout_first_byte"
	TimeoutAttempt   Class = "timeout_attempt"
	ServerError      Class = "server_error"
	StreamTruncated  Class = "stream_truncated"
	StreamErrorEvent Class = "stream_error_event"
	Throttled        Class = "throttled"
	ProviderAuth     Class = "provider_auth"
	ProviderQuota    Class = "provider_quota"
	DeploymentGone   Class = "deployment_missing"
	BadPayload       Class = "bad_payload"
	EmptyCompletion  Class = "empty_completion"
	// BaseURLRefused is a connection that we did not make: the base URL's name resolved
	// into the own network, and no operator has opened that host (Z1). Where the address
	// itself says so the route is skipped under the same word. It says nothing about
	// the provider, and the next lookup may say another thing: no record is touched.
	BaseURLRefused Class = "base_url_refused"

	InvalidRequest     Class = "invalid_request"
	ContextLength      Class = "context_length"
	QuotaExceeded      Class = "quota_exceeded"
	ContentPolicy      Class = "content_policy"
	Refusal            Class = "refusal"
	ClientCancelled    Class = "client_cancelled"
	DeadlineExceeded   Class = "deadline_exceeded"
	CustomerCredential Class = "customer_credential"
)

// Move is what the walk may do after a failure.
type Move uint8

// Stop ends the walk with the caller's own answer; Another tries the next rung;
// AnotherIfLarger does so only where a remaining rung has a larger window (W2);
// AnotherIfOptedIn only where the model's policy asks for it (W7).
const (
	Stop Move = iota
	Another
	AnotherIfLarger
	AnotherIfOptedIn
)

// Health is which record a failure touches (W3, H1-H5).
type Health uint8

// NoHealth leaves every record as it was. Operational counts towards opening the
// route's circuit. OpensAtOnce opens it (H3). ThrottleWindow closes the route for
// a while without opening its circuit (H2).
const (
	NoHealth Health = iota
	Operational
	OpensAtOnce
	ThrottleWindow
)

// Traits is one row of the table.
type Traits struct {
	Move Move
	// SameRoute allows an ordinary retry on the same route, within
	// same_route_attempts (W9). Silence is not retried there (W11), nor is a
	// credential that was refused.
	SameRoute bool
	Health    Health
	// MaybeBilled marks an answer that was lost after the request was sent: the
	// provider may have done the work (W13).
	MaybeBilled bool
}

// table has one row a class, in the order of W2.
var table = map[Class]Traits{
	ConnectError:     {Move: Another, SameRoute: true, Health: Operational},
	TimeoutFirstByte: {Move: Another, Health: Operational, MaybeBilled: true},
	TimeoutAttempt:   {Move: Another, Health: Operational, MaybeBilled: true},
	ServerError:      {Move: Another, SameRoute: true, Health: Operational},
	StreamTruncated:  {Move: Another, SameRoute: true, Health: Operational, MaybeBilled: true},
	StreamErrorEvent: {Move: Another, SameRoute: true, Health: Operational},
	Throttled:        {Move: Another, Health: ThrottleWindow},
	ProviderAuth:     {Move: Another, Health: OpensAtOnce},
	ProviderQuota:    {Move: Another, Health: OpensAtOnce},
	DeploymentGone:   {Move: Another, Health: OpensAtOnce},
	BadPayload:       {Move: Another, Health: Operational, MaybeBilled: true},
	EmptyCompletion:  {Move: Another},
	BaseURLRefused:   {Move: Another},

	InvalidRequest:     {Move: Stop},
	ContextLength:      {Move: AnotherIfLarger},
	QuotaExceeded:      {Move: Stop},
	ContentPolicy:      {Move: AnotherIfOptedIn},
	Refusal:            {Move: AnotherIfOptedIn},
	ClientCancelled:    {Move: Stop},
	DeadlineExceeded:   {Move: Stop},
	CustomerCredential: {Move: Stop},
}

// Of returns the row of a class. A class outside the table stops the walk and
// touches nothing: a failure that nobody classified must not be tried at a second
// provider's cost.
func Of(c Class) Traits { return table[c] }

// Classes lists every class of the table, for tests and documentation.
func Classes() []Class {
	return []Class{
		ConnectError, TimeoutFirstByte, TimeoutAttempt, ServerError, StreamTruncated, StreamErrorEvent,
		Throttled, ProviderAuth, ProviderQuota, DeploymentGone, BadPayload, EmptyCompletion, BaseURLRefused,
		InvalidRequest, ContextLength, QuotaExceeded, ContentPolicy, Refusal, ClientCancelled,
		DeadlineExceeded, CustomerCredential,
	}
}
