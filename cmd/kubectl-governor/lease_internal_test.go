package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	ktesting "k8s.io/client-go/testing"
)

const leased = `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: NAME.governor.dev, namespace: SPACE}
spec: {holderIdentity: HOLDER, leaseDurationSeconds: 15, renewTime: "RENEWED.000000Z"}
`

func leaseOf(name, space, holder, renewed string) string {
	return strings.NewReplacer("NAME", name, "SPACE", space, "HOLDER", holder, "RENEWED", renewed).Replace(leased)
}

// statusBy is an object whose status the operator wrote.
func statusBy(manager string) string {
	return "apiVersion: v1\nkind: Thing\nmetadata: {name: a, managedFields: [{manager: " + manager + ", subresource: status}, {manager: kubectl}]}\n"
}

func TestAnOperatorThatDoesNotRun(t *testing.T) {
	cases := map[string]struct {
		reason, lease, by, want string
		forbidden               bool
	}{
		"Renewed":     {"it runs", leaseOf("governor", "governor-system", "pod-a", "2026-11-20T15:59:50"), "governor", "", false},
		"ClockAhead":  {"clocks differ", leaseOf("governor", "governor-system", "pod-a", "2026-11-20T15:59:20"), "governor", "", false},
		"Lapsed":      {"it ended without a word", leaseOf("governor", "governor-system", "pod-a", "2026-11-20T15:50:00"), "governor", "The operator governor does not run: its lease governor-system/governor.governor.dev was last renewed at 2026-11-20 15:50:00 UTC, by pod-a. Its last report follows.\n", false},
		"Released":    {"it was stopped", leaseOf("governor", "governor-system", `""`, "2026-11-20T15:59:59"), "governor", "no replica holds its lease", false},
		"Elsewhere":   {"it was installed in another namespace", leaseOf("governor", "ops", "pod-a", "2026-11-20T15:50:00"), "governor", "its lease ops/governor.governor.dev was last renewed", false},
		"Uninstalled": {"there is no lease", "", "governor", "no namespace has its lease governor.governor.dev", false},
		"OfAnAuthor":  {"an operator of others has its own", leaseOf("chocolate", "chocolate-system", "pod-a", "2026-11-20T15:50:00"), "chocolate", "The operator chocolate does not run", false},
		"ByHand":      {"a user is no operator", "", "kubectl-edit", "", false},
		"Forbidden":   {"the user may not look", leaseOf("governor", "governor-system", "pod-a", "2026-11-20T15:50:00"), "governor", "", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, _ := talking(nil)
			var said bytes.Buffer
			s.ErrOut = &said
			var there []runtime.Object
			if c.lease != "" {
				there = append(there, objects(t, c.lease)[0])
			}
			client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{leaseKind: "LeaseList"}, there...)
			if c.forbidden {
				client.PrependReactor("*", "leases", func(ktesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(leaseKind.GroupResource(), "", errors.New("no"))
				})
			}
			s.warnOfAbsence(t.Context(), client, objects(t, statusBy(c.by))...)
			if c.want == "" && said.Len() > 0 || !strings.Contains(said.String(), c.want) {
				t.Errorf("%s: got %q, want %q", c.reason, &said, c.want)
			}
		})
	}
}
