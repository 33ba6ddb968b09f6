package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// asked is what kubectl prints when a user asks, without effect, for one server.
func (i *instance) asked() (string, error) {
	return command("sh", "-c", fmt.Sprintf(`kubectl -n %s apply --dry-run=server -f - 2>&1 <<END
{apiVersion: cache.example.com/v1alpha1, kind: Memcached, metadata: {name: asked}, spec: {size: 1}}
END`, i.key.Namespace))
}

func (i *instance) advised(context.Context) error {
	said, err := i.asked()
	if err != nil || !strings.Contains(said, "Warning: spec.size is 1") {
		return fmt.Errorf("users hear %q: %w", said, err)
	}
	return nil
}

// Users are advised while replicas come and go and the certificate is lost, and are
// not held up when nobody is there to advise.
func TestUsersAreAdvised(t *testing.T) {
	i := newInstance(t)
	eventually(t, "users are advised", i.advised)
	must(t, "-n", "governor-system", "rollout", "restart", "deployment/governor")
	for range 20 {
		if err := i.advised(t.Context()); err != nil {
			t.Errorf("during a rollout: %v", err)
		}
	}
	must(t, "-n", "governor-system", "rollout", "status", "deployment/governor", "--timeout=60s")
	must(t, "-n", "governor-system", "delete", "secret/governor-webhook-certificate")
	eventually(t, "users are advised with another certificate", i.advised)
}
