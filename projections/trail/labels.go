package trail

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/sluice-gateway/sluice/domain/money"
)

// tone is what a line says at a glance.
type tone uint8

const (
	plain tone = iota
	good
	warning
	bad
)

// label is what a line of the waterfall says about an entry. Lines about an attempt
// are indented under it.
type label struct {
	text string
	tone tone
}

// labelOf words an entry from its fields as shown: what is masked there is masked
// here. An event without words of its own is shown by name.
func labelOf(e Entry) label {
	f := gjson.ParseBytes(e.Fields)
	if word, ok := labels[e.Event]; ok {
		return word(f)
	}
	return label{text: e.Event}
}

var labels = map[string]func(gjson.Result) label{
	"request_admitted": func(f gjson.Result) label {
		return label{text: fmt.Sprintf("admitted, %d tokens in, at most %d out",
			f.Get("estimate.input_tokens").Int(), f.Get("estimate.max_output_tokens").Int())}
	},
	"request_refused": func(f gjson.Result) label {
		return label{words("refused:", f.Get("code").Str, f.Get("scope").Str), bad}
	},
	"route_skipped": func(f gjson.Result) label {
		where := words(f.Get("provider").Str, f.Get("model").Str)
		return label{words("skip rung", f.Get("rung").Raw, where+":", f.Get("reason").Str), warning}
	},
	"attempt_reserved": func(f gjson.Result) label {
		text := words("attempt", f.Get("attempt").Raw, f.Get("kind").Str+":", destinationOf(f)) + paidBy(f)
		if selection := f.Get("selection").Str; selection != "" {
			text += ", " + selection
		}
		return label{text: text}
	},
	"attempt_failed": func(f gjson.Result) label {
		text := words("  failed:", f.Get("failure").Str, status(f))
		if f.Get("possibly_billed").Bool() {
			text += ", possibly billed"
		}
		return label{text, bad}
	},
	"attempt_throttled": func(f gjson.Result) label {
		text := words("  throttled:", status(f))
		if after := f.Get("retry_after_ms").Int(); after > 0 {
			text += fmt.Sprintf(", retry after %d ms", after)
		}
		return label{text, warning}
	},
	"throttle_decided": func(f gjson.Result) label {
		return label{"  " + f.Get("decision").Str, warning}
	},
	"attempt_committed": func(f gjson.Result) label {
		return label{fmt.Sprintf("  first output (%s) after %d ms", f.Get("first_output").Str, f.Get("ttft_ms").Int()), good}
	},
	"attempt_settled": func(f gjson.Result) label {
		charge := usd(f.Get("charge_nanousd"))
		if surcharge := f.Get("surcharge_nanousd"); surcharge.Int() != 0 {
			charge += " (surcharge " + usd(surcharge) + ")"
		}
		text := words("  settled:", charge, f.Get("basis").Str)
		// What was not reported is not zero (M4): it is not there.
		if in := f.Get("usage.input_tokens"); in.Type == gjson.Number {
			text += fmt.Sprintf(", %d in", in.Int())
		}
		if out := f.Get("usage.output_tokens"); out.Type == gjson.Number {
			text += fmt.Sprintf(", %d out", out.Int())
		}
		if by := f.Get("promotion.id").Str; by != "" {
			text += fmt.Sprintf(", %s paid by %s", usd(f.Get("subsidy_nanousd")), by)
		}
		return label{text: text}
	},
	"reservation_released": func(f gjson.Result) label {
		return label{text: "  released: " + usd(f.Get("released_nanousd"))}
	},
	"reservation_overrun": func(f gjson.Result) label {
		return label{"  over the reservation by " + usd(f.Get("overrun_nanousd")), warning}
	},
	"meter_hold_placed": func(f gjson.Result) label {
		return label{fmt.Sprintf("  usage unknown, %d tokens held", f.Get("tokens").Int()), warning}
	},
	"meter_hold_resolved": func(f gjson.Result) label {
		return label{text: "  held tokens resolved by " + f.Get("by").Str}
	},
	"model_changed": func(f gjson.Result) label {
		return label{words("model", f.Get("from").Str, "->", f.Get("to").Str, "by", f.Get("by").Str), warning}
	},
	"request_finalized": func(f gjson.Result) label {
		l := label{words("finalized:", f.Get("outcome").Str, f.Get("code").Str), good}
		if f.Get("outcome").Str != "completed" {
			l.tone = bad
		}
		return l
	},
}

// destinationOf names where an attempt went, or that it is not to be named.
func destinationOf(f gjson.Result) string {
	if provider := f.Get("provider").Str; provider != "" {
		return words(provider, f.Get("model").Str)
	}
	return words("masked", f.Get("model").Str)
}

// paidBy says which promotion pays what of an attempt.
func paidBy(f gjson.Result) string {
	p := f.Get("promotion")
	if !p.Exists() {
		return ""
	}
	free := money.Free{
		Input: p.Get("free.input").Bool(), CachedInput: p.Get("free.cached_input").Bool(), Output: p.Get("free.output").Bool(),
	}
	return fmt.Sprintf(", %s pays %s", p.Get("id").Str, free)
}

func status(f gjson.Result) string {
	if s := f.Get("status"); s.Int() != 0 {
		return s.Raw
	}
	return ""
}

func usd(nano gjson.Result) string { return "$" + money.NanoUSD(nano.Int()).USD().String() }

// words joins what is there.
func words(parts ...string) string {
	there := parts[:0]
	for _, p := range parts {
		if strings.Trim(p, ":") != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, " ")
}
