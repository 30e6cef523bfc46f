package catalog

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/shopspring/decimal"
)

// Problem is one reason why a catalog cannot be saved.
type Problem struct {
	// Path is where, in the order the objects came in: models[0].chain[1].model.
	Path   string
	Reason string
}

// Bounds of what may be written. Each keeps a list that every request or every
// snapshot walks from growing without end.
const (
	maxIDBytes       = 128
	maxTextBytes     = 256
	maxURLBytes      = 2048
	maxKeys          = 64
	maxPerTenant     = 256
	maxTokens        = 1_000_000_000
	maxTimeout       = time.Hour
	maxRedialRetries = 6  // W9
	maxMaxAttempts   = 64 // the walk records each of them
)

// Validate tells everything that is wrong with a catalog as a whole, in file
// order. It is pure: whether a host can be reached or may be (Z1), and whether an
// environment variable is set, is judged where a route is called.
func Validate(o Objects) []Problem {
	v := &validation{
		providers:   map[string]Provider{},
		deployments: map[string]bool{},
		models:      map[string]bool{},
		exactModels: map[string]Model{},
		bySlug:      map[string]Model{},
		pools:       map[string]bool{},
		tiers:       map[string]bool{},
	}
	for i, p := range o.Providers {
		v.provider(at("providers", i), p)
	}
	for i, d := range o.Deployments {
		v.deployment(at("deployments", i), d)
	}
	for i, m := range o.Models {
		v.modelHead(at("models", i), m)
	}
	for i, m := range o.Models {
		v.model(at("models", i), m)
	}
	classes := map[string]bool{}
	for i, c := range o.Classes {
		path := at("classes", i)
		v.id(path+".name", c.Name)
		v.once(path+".name", "class", c.Name, classes)
		v.names(path+".chain", c.Chain)
	}
	for i, t := range o.Tiers {
		v.tier(at("tiers", i), t)
	}
	tenants := map[string]bool{}
	for i, t := range o.Tenants {
		v.tenant(at("tenants", i), t, tenants)
	}
	v.webhooks("webhooks", "", o.Webhooks)
	if len(v.problems) == 0 {
		v.whole(o)
	}
	return v.problems
}

// validation collects problems, and what references may point to.
type validation struct {
	problems    []Problem
	providers   map[string]Provider
	deployments map[string]bool
	models      map[string]bool
	// exactModels is the first model that uses a deployment.
	exactModels map[string]Model
	bySlug      map[string]Model
	// pools are the exact models.
	pools map[string]bool
	tiers map[string]bool
}

func at(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

func (v *validation) fail(path, format string, args ...any) {
	v.problems = append(v.problems, Problem{Path: path, Reason: fmt.Sprintf(format, args...)})
}

// shown is a name as an error may show it: quoted and short. What stands in the
// place of a name may be anything, also a secret that was pasted there whole.
func shown(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}

func idChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._@:+-", c) >= 0
}

// id checks an identifier: it becomes part of stream names, counter keys and
// paths, so it is short, printable and without a slash.
func (v *validation) id(path, id string) bool {
	return v.identifier(path, id, "", "letters, digits and . _ @ : + -")
}

// ValidID reports whether a name may be a team's or an identity's: what every identifier
// is made of.
func ValidID(name string) bool { return (&validation{}).id("", name) }

// name checks an identifier that is nobody's parent and may hold a slash, as
// model names of aggregators do.
func (v *validation) name(path, id string) bool {
	if strings.HasPrefix(id, "class/") {
		v.fail(path, "a name cannot begin with class/, which asks for a traffic class")
		return false
	}
	return v.identifier(path, id, "/", "letters, digits and . _ @ : + - /")
}

func (v *validation) identifier(path, id, also, allowed string) bool {
	switch {
	case id == "":
		v.fail(path, "is missing")
		return false
	case len(id) > maxIDBytes:
		v.fail(path, "is longer than %d bytes", maxIDBytes)
		return false
	}
	for i := range len(id) {
		if !idChar(id[i]) && strings.IndexByte(also, id[i]) < 0 {
			v.fail(path, "%s may hold only %s", shown(id), allowed)
			return false
		}
	}
	if strings.IndexByte("._@:+-/", id[0]) >= 0 || strings.HasSuffix(id, "/") || strings.Contains(id, "//") {
		v.fail(path, "%s must begin with a letter or a digit, and hold no empty part between slashes", shown(id))
		return false
	}
	return true
}

func (v *validation) once(path, kind, id string, seen map[string]bool) {
	if id != "" && seen[id] {
		v.fail(path, "%s %s is defined twice", kind, shown(id))
	}
	seen[id] = true
}

// oneOf checks a word. Empty is the default and always right.
func oneOf[T ~string](v *validation, path string, word T, allowed ...T) {
	if word == "" || slices.Contains(allowed, word) {
		return
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	v.fail(path, "%s is none of %s", shown(string(word)), strings.Join(words, ", "))
}

// text checks free text: printable, because it ends up in logs, terminals, URLs
// and headers.
func (v *validation) text(path, s string, required bool) {
	if required && strings.TrimSpace(s) == "" {
		v.fail(path, "is missing")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(s) {
		v.fail(path, "holds characters that cannot be printed")
	}
	if len(s) > maxTextBytes {
		v.fail(path, "is longer than %d bytes", maxTextBytes)
	}
}

func (v *validation) within(path string, n, least, most int64) {
	if n < least || n > most {
		v.fail(path, "%d is not between %d and %d", n, least, most)
	}
}

// fraction checks an optional number in [0, most].
func (v *validation) fraction(path string, f *float64, most float64) {
	if f != nil && (math.IsNaN(*f) || *f < 0 || *f > most) {
		v.fail(path, "%v is not between 0 and %v", *f, most)
	}
}

// duration checks a time that may be left out (zero).
func (v *validation) duration(path string, d Duration, most time.Duration) {
	if d < 0 || time.Duration(d) > most {
		v.fail(path, "%s is not between 0 and %s", time.Duration(d), most)
	}
}

func (v *validation) provider(path string, p Provider) {
	v.id(path+".id", p.ID)
	if _, twice := v.providers[p.ID]; twice && p.ID != "" {
		v.fail(path+".id", "provider %s is defined twice", shown(p.ID))
	}
	v.providers[p.ID] = p
	if p.Protocol == "" {
		v.fail(path+".protocol", "is missing")
	}
	oneOf(v, path+".protocol", p.Protocol, OpenAI, OpenAIResponses, Anthropic, Bedrock, Gemini)
	v.baseURL(path+".base_url", p)
	if p.Protocol == Bedrock && p.Region == "" && p.BaseURL == "" {
		v.fail(path+".region", "is missing: protocol bedrock needs a region")
	}
	if p.Region != "" {
		v.id(path+".region", p.Region)
	}
	oneOf(v, path+".key_strategy", p.KeyStrategy, RoundRobin, Failover)
	oneOf(v, path+".on_client_cancel", p.OnClientCancel, Cancel, Drain)
	if len(p.Keys) > maxKeys {
		v.fail(path+".keys", "more than %d keys", maxKeys)
		return
	}
	seen := map[string]bool{}
	for i, k := range p.Keys {
		v.providerKey(path+"."+at("keys", i), p.Protocol, k, seen)
	}
}

// baseURL never repeats the address in a reason: it may hold a credential.
func (v *validation) baseURL(path string, p Provider) {
	if p.BaseURL == "" {
		if p.Protocol != Bedrock {
			v.fail(path, "is missing: protocol %s needs a base URL", shown(string(p.Protocol)))
		}
		return
	}
	u := v.url(path, p.BaseURL, ", name an environment variable under keys")
	if u != nil && (u.RawQuery != "" || u.ForceQuery || u.Fragment != "") {
		v.fail(path, "holds a query or a fragment: paths are appended to it")
	}
}

// url checks an address that requests are sent to, without ever repeating it. instead
// is what to do in the place of a user in it. It is nil for one that is no such address.
func (v *validation) url(path, address, instead string) *url.URL {
	u, err := url.Parse(address)
	switch {
	case len(address) > maxURLBytes:
		v.fail(path, "is longer than %d bytes", maxURLBytes)
	case err != nil || u.Hostname() == "":
		v.fail(path, "is not an absolute URL")
	case !isPort(u.Port()):
		v.fail(path, "has a port that is not between 1 and 65535")
	case u.Scheme != "http" && u.Scheme != "https":
		v.fail(path, "scheme %s is neither http nor https", shown(u.Scheme))
	case u.User != nil:
		v.fail(path, "holds a user or a password: a secret never stands in configuration%s", instead)
	default:
		return u
	}
	return nil
}

// isPort: none is the scheme's own.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

func (v *validation) providerKey(path string, protocol Protocol, k ProviderKey, seen map[string]bool) {
	v.id(path+".id", k.ID)
	v.once(path+".id", "key", k.ID, seen)
	pair := k.EnvAccessKey != "" || k.EnvSecretKey != "" || k.EnvSessionToken != ""
	switch {
	case k.Stored && (k.Env != "" || pair):
		v.fail(path, "is stored and names an environment variable: one or the other")
	case k.Stored:
	case k.Env != "" && pair:
		v.fail(path, "has env and env_access_key or env_secret_key: one or the other")
	case k.Env == "" && (k.EnvAccessKey == "") != (k.EnvSecretKey == ""):
		v.fail(path, "needs both env_access_key and env_secret_key")
	case k.Env == "" && k.EnvSessionToken != "" && k.EnvAccessKey == "":
		v.fail(path, "has env_session_token without env_access_key and env_secret_key")
	case k.Env == "" && !pair:
		v.fail(path, "says nowhere where the secret is: env, env_access_key with env_secret_key, or stored: true")
	case pair && protocol != Bedrock:
		v.fail(path, "env_access_key and env_secret_key belong to protocol bedrock; use env")
	}
	v.env(path+".env", k.Env)
	v.env(path+".env_access_key", k.EnvAccessKey)
	v.env(path+".env_secret_key", k.EnvSecretKey)
	v.env(path+".env_session_token", k.EnvSessionToken)
}

// env checks the name of an environment variable. The reason never repeats it:
// what stands here in error is most often the secret itself (C14).
func (v *validation) env(path, name string) {
	if name == "" {
		return
	}
	ok := len(name) <= maxIDBytes && (name[0] < '0' || name[0] > '9')
	for i := range len(name) {
		c := name[i]
		ok = ok && ('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_')
	}
	if !ok {
		v.fail(path, "is not the name of an environment variable (letters, digits and _); a secret never stands in configuration")
	}
}

// provided checks the provider that something is for.
func (v *validation) provided(path, provider string) {
	switch _, ok := v.providers[provider]; {
	case provider == "":
		v.fail(path, "is missing")
	case !ok:
		v.fail(path, "provider %s does not exist", shown(provider))
	}
}

func (v *validation) deployment(path string, d Deployment) {
	v.name(path+".id", d.ID)
	v.once(path+".id", "deployment", d.ID, v.deployments)
	v.provided(path+".provider", d.Provider)
	v.text(path+".upstream_model", d.UpstreamModel, true)
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"total", d.Context.Total},
		{"max_input", d.Context.MaxInput},
		{"max_output", d.Context.MaxOutput},
		{"min_output", d.Context.MinOutput},
	} {
		v.within(path+".context."+f.name, f.n, 0, maxTokens)
		if t := d.Context.Total; t > 0 && f.n > t {
			v.fail(path+".context."+f.name, "%d is more than the total window of %d", f.n, t)
		}
	}
	if d.Context.MaxOutput > 0 && d.Context.MinOutput > d.Context.MaxOutput {
		v.fail(path+".context.min_output", "is more than max_output")
	}
	v.capabilities(path+".capabilities", d.Capabilities)
	v.prices(path+".prices", d)
	if d.Dispatch != nil {
		v.dispatch(path+".dispatch", *d.Dispatch)
	}
	v.duration(path+".timeouts.connect", d.Timeouts.Connect, maxTimeout)
	v.duration(path+".timeouts.first_byte", d.Timeouts.FirstByte, maxTimeout)
	v.duration(path+".timeouts.first_output", d.Timeouts.FirstOutput, maxTimeout)
	v.duration(path+".timeouts.stream_idle", d.Timeouts.StreamIdle, maxTimeout)
}

func (v *validation) capabilities(path string, list []Capability) {
	seen := map[string]bool{}
	for i, c := range list {
		p := fmt.Sprintf("%s[%d]", path, i)
		if c == "" {
			v.fail(p, "is empty")
		}
		oneOf(v, p, c, Chat, Tools, Images, StructuredOutput, ReasoningOutput, PromptCaching, Transcription, Embeddings)
		v.once(p, "capability", string(c), seen)
	}
}

func (v *validation) prices(path string, d Deployment) {
	p := d.Prices
	v.text(path+".source", p.Source, false)
	v.rate(path+".input", p.Input)
	v.rate(path+".output", p.Output)
	v.rate(path+".cache_read", p.CacheRead)
	v.rate(path+".cache_write_5m", p.CacheWrite5m)
	v.rate(path+".cache_write_1h", p.CacheWrite1h)
	v.rate(path+".audio_input", p.AudioInput)
	v.rate(path+".image_input", p.ImageInput)
	v.rate(path+".audio_output", p.AudioOutput)
	v.rate(path+".image_output", p.ImageOutput)
	if l := p.LongContext; l != nil {
		path += ".long_context"
		v.within(path+".above_input_tokens", l.AboveInputTokens, 1, maxTokens)
		v.rate(path+".input", l.Input)
		v.rate(path+".output", l.Output)
		v.rate(path+".cache_read", l.CacheRead)
		v.rate(path+".cache_write_5m", l.CacheWrite5m)
		v.rate(path+".cache_write_1h", l.CacheWrite1h)
	}
}

func (v *validation) rate(path string, rate *decimal.Decimal) {
	switch {
	case rate == nil:
	case rate.Sign() < 0:
		v.fail(path, "a price cannot be negative")
	case !fits(*rate, maxIntegerDigits, maxFractionDigits):
		v.fail(path, "a price has at most %d digits before the point and %d after it", maxIntegerDigits, maxFractionDigits)
	}
}

func (v *validation) dispatch(path string, d Dispatch) {
	const most = 1_000_000_000_000
	v.within(path+".concurrency_bound", int64(d.ConcurrencyBound), 0, 1_000_000)
	v.within(path+".requests_per_minute", d.RequestsPerMinute, 0, most)
	v.within(path+".tokens_per_minute", d.TokensPerMinute, 0, most)
	v.within(path+".sticky_spill_seconds", d.StickySpillSeconds, 0, 7*24*3600)
	v.fraction(path+".fresh_session_spill_fraction", d.FreshSessionSpillFraction, 1)
	v.fraction(path+".headroom_spill_below", d.HeadroomSpillBelow, 1)
	v.fraction(path+".cache_priority_alpha", d.CachePriorityAlpha, 100)
	oneOf(v, path+".saturation", d.Saturation, Overflow, Refuse)
}
