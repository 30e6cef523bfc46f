package circuit

import "time"

// ExhaustedFor is how long an account that said it is out of funds is known to be
// (H12). Each time it says so again begins anew. What is older is not known any more:
// the account is asked once in its own place, which costs a failed call an hour and
// finds out that somebody has paid.
const ExhaustedFor = time.Hour

// exhaustedStep is how much longer an account must be known to be out of funds for it
// to be worth an event: a busy account says it with every call.
const exhaustedStep = time.Minute

// AccountExhausted says that a credential's account is out of funds. Its routes stand
// behind the better-funded ones of their group until a time, or until AccountFunded or
// CircuitClosed of the same credential (H12).
type AccountExhausted struct {
	Name
	Cause Cause `json:"cause"`
	// SecretID tells which secret it was, and is none: another one in its place is
	// another account.
	SecretID string    `json:"secret_id,omitempty"`
	Until    time.Time `json:"until"`
}

// AccountFunded says that a credential which had been out of funds served again.
type AccountFunded struct {
	Name
}

// account is what is known of the funds behind a credential.
type account struct {
	until    time.Time
	secretID string
	cause    Cause
}

// Exhausted reports whether the account behind the credential is known to be out of
// funds, as far as it is still this secret's (H12).
func (c *Circuit) Exhausted(secretID string, now time.Time) bool {
	return now.Before(c.account.until) && c.account.secretID == secretID
}

// ExhaustedUntil is when that knowledge ends; zero for none.
func (c *Circuit) ExhaustedUntil() time.Time { return c.account.until }

// SecretID tells whose account it is.
func (c *Circuit) SecretID() string { return c.account.secretID }

// exhausted notes that the account is out of funds. The failure circuit stays as it is.
func (c *Circuit) exhausted(s Signal, now time.Time) Change {
	c.giveBack()
	until := now.Add(ExhaustedFor)
	same := c.account.secretID == s.SecretID
	if same && until.Sub(c.account.until) < exhaustedStep {
		return Change{}
	}
	c.account = account{until: until, secretID: s.SecretID, cause: s.Cause}
	return Change{Exhausted: true, Cause: s.Cause, Until: until, SecretID: s.SecretID}
}

// funded forgets that the account was out of funds, and says whether it was.
func (c *Circuit) funded() Change {
	if c.account.until.IsZero() {
		return Change{}
	}
	c.account = account{}
	return Change{Funded: true}
}
