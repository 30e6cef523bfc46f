package gemini

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// errBaseURL is a base URL that is no http(s) URL.
var errBaseURL = errors.New("gemini: base URL is not an absolute http or https URL")

// vertexHost is the host of Vertex AI, which regions prefix.
const vertexHost = "aiplatform.googleapis.com"

// apiVersion is a version at the end of a base URL or in front of its resources.
var apiVersion = regexp.MustCompile(`/v\d+[a-z0-9]*(/|$)`)

// endpoint is where the calls of one provider go.
type endpoint struct {
	base   *url.URL
	vertex bool
}

func endpointOf(baseURL string) (endpoint, error) {
	base, err := url.Parse(baseURL)
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") {
		return endpoint{}, errBaseURL
	}
	e := endpoint{base: base}
	e.vertex = strings.HasSuffix(base.Hostname(), vertexHost) || strings.Contains(base.Path, "/projects/")
	if !apiVersion.MatchString(base.Path) {
		// Google's own SDKs take the host alone and add the version.
		e.base = base.JoinPath(e.version())
	}
	return e, nil
}

func (e endpoint) version() string {
	if e.vertex {
		return "v1"
	}
	return "v1beta"
}

// url is the address of one method of a model. project is the one that the
// credentials belong to, for a base URL that names none; it may be empty, as with the
// API keys of Vertex AI's express mode.
func (e endpoint) url(model, project string, stream bool) string {
	at := *e.base.JoinPath(e.resource(model, project) + ":" + method(stream))
	if stream {
		// Without it a stream is one JSON array.
		query := at.Query()
		query.Set("alt", "sse")
		at.RawQuery = query.Encode()
	}
	return at.String()
}

func method(stream bool) string {
	if stream {
		return "streamGenerateContent"
	}
	return "generateContent"
}

// resource is a model's path under the base URL: the model's own where it has one
// (tunedModels/x, endpoints/1, publishers/meta/models/x), else Google's.
func (e endpoint) resource(model, project string) string {
	parts := strings.Split(model, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	name := strings.Join(parts, "/")
	switch {
	case !e.vertex && len(parts) > 1:
		return name
	case !e.vertex:
		return "models/" + name
	case parts[0] == "models":
		name = "publishers/google/" + name
	case len(parts) == 1:
		name = "publishers/google/models/" + name
	}
	if parts[0] == "projects" || project == "" || strings.Contains(e.base.Path, "/projects/") {
		return name
	}
	return "projects/" + url.PathEscape(project) + "/locations/" + e.location() + "/" + name
}

// location is the region in the host's name, global where it has none.
func (e endpoint) location() string {
	region, _ := strings.CutSuffix(e.base.Hostname(), vertexHost)
	return cmp.Or(strings.TrimSuffix(region, "-"), "global")
}
