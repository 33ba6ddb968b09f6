package lifecycle_test

import (
	"testing"

	"github.com/governor-dev/governor/lifecycle"
)

// Pods carry digests that earlier operators wrote: another digest restarts them all.
func TestDigestIsStable(t *testing.T) {
	for want, value := range map[string]any{
		"n1b0xuegv1z3": map[string]any{"image": "etcd:3.6", "args": []string{"--a"}},
		"49p8094dd351": "",
	} {
		if got := lifecycle.Digest(value); got != want {
			t.Errorf("the digest of %v is %s, it was %s", value, got, want)
		}
	}
}
