package adminapi

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-gateway/sluice/adapters/config"
	"github.com/sluice-gateway/sluice/domain/catalog"
)

// maxBodyBytes bounds one object: a chain of 256 rungs with long names is 64 KiB.
const maxBodyBytes = 1 << 20

// read is the body, checked for shape, and the revision that it or If-Match names.
func (t target) read(c *call) (config.Document, *int64, error) {
	expected, err := ifMatch(c)
	if err != nil {
		return config.Document{}, nil, err
	}
	doc, err := body(c, t.isChain())
	if err != nil {
		return doc, nil, err
	}
	said, err := doc.Int("revision")
	switch {
	case err != nil:
		return doc, nil, err
	case expected == nil:
		expected = said
	case said != nil && *said != *expected:
		return doc, nil, badField("revision", "is not the one in If-Match")
	}
	for _, name := range t.shown {
		doc.Remove(name)
	}
	// Judged before it is merged with anything: an unknown field is refused, also one
	// that null would clear.
	if _, err := decode(t.id, t.wrap(doc)); err != nil {
		return doc, nil, t.within(err)
	}
	return doc, expected, nil
}

// isChain reports whether the address stands for a chain and little else.
func (t target) isChain() bool {
	return t.id.Kind == catalog.KindChain || t.id.Kind == catalog.KindTenantChain || t.id.Kind == catalog.KindClass
}

// body is the document that was sent; for a chain the list alone will do.
func body(c *call, chain bool) (config.Document, error) {
	if len(c.Body) > maxBodyBytes {
		return config.Document{}, fail(http.StatusRequestEntityTooLarge, codeTooLarge, "The body is larger than 1 MiB.")
	}
	text := c.Body
	if chain && bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		text = slices.Concat([]byte(`{"chain":`), text, []byte("}"))
	}
	return config.ParseDocument(text)
}

// ifMatch reads the revision that the editor loaded: an ETag of ours, with or
// without its quotes.
func ifMatch(c *call) (*int64, error) {
	sent := c.Header.Get("If-Match")
	if sent == "" {
		return nil, nil
	}
	revision, err := strconv.ParseInt(strings.Trim(sent, `"`), 10, 64)
	if err != nil || revision < 0 {
		return nil, badField("If-Match", "must be a revision, as the ETag of a read says it")
	}
	return &revision, nil
}
