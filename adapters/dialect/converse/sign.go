package converse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/sluice-gateway/sluice/adapters/dialect"
)

const (
	contentType = "application/json"
	// service is the name that signatures carry, for bedrock-runtime too.
	service = "bedrock"
)

// signer is safe for concurrent use. It remembers one derived key for each region.
var signer = v4.NewSigner()

// authorize adds what opens the provider: a signature, or a Bedrock API key.
func authorize(up *dialect.Upstream, t dialect.Target, host string) error {
	switch {
	case t.Access.ID != "":
		region := t.Region
		if region == "" {
			region = regionOf(host)
		}
		if region == "" {
			return errRegion
		}
		return sign(up, t, region)
	case t.Secret != "":
		up.Header.Set("Authorization", "Bearer "+t.Secret)
	}
	return nil
}

// sign signs the request with Signature Version 4. Of the headers only the host, the
// content type, the length and what the signer adds are signed: a proxy in between
// may rewrite any other one.
func sign(up *dialect.Upstream, t dialect.Target, region string) error {
	req, err := http.NewRequest(up.Method, up.URL, http.NoBody)
	if err != nil {
		return errBaseURL
	}
	req.Header.Set("Content-Type", contentType)
	req.ContentLength = int64(len(up.Body))
	credentials := aws.Credentials{AccessKeyID: t.Access.ID, SecretAccessKey: t.Access.Secret, SessionToken: t.Access.Session}
	sum := sha256.Sum256(up.Body)
	if err := signer.SignHTTP(context.Background(), credentials, req, hex.EncodeToString(sum[:]), service, region, t.Now); err != nil {
		return fmt.Errorf("converse: sign: %w", err)
	}
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
		if value := req.Header.Get(name); value != "" {
			up.Header.Set(name, value)
		}
	}
	return nil
}

// regionOf reads the region out of a public endpoint's name,
// bedrock-runtime.REGION.amazonaws.com or its FIPS sibling. Any other host has none.
func regionOf(host string) string {
	name, rest, _ := strings.Cut(host, ".")
	region, domain, _ := strings.Cut(rest, ".")
	if (name == "bedrock-runtime" || name == "bedrock-runtime-fips") && strings.HasPrefix(domain, "amazonaws.com") {
		return region
	}
	return ""
}
