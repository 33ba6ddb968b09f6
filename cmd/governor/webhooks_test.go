package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/engine"
)

// manifests reads the Service and the configuration.
func manifests(t *testing.T) (service corev1.Service, config admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	raw, err := os.ReadFile("../../config/manager/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := bytes.Cut(raw, []byte("---\n"))
	if err := errors.Join(yaml.UnmarshalStrict(first, &service), yaml.UnmarshalStrict(second, &config)); err != nil {
		t.Fatal(err)
	}
	return service, config
}

// rules are those of the kinds that the operator runs.
func rules(t *testing.T) []admissionregistrationv1.RuleWithOperations {
	t.Helper()
	var all []admissionregistrationv1.RuleWithOperations
	for _, add := range apis() {
		s := runtime.NewScheme()
		if err := add(s); err != nil {
			t.Fatal(err)
		}
		for gvk := range s.AllKnownTypes() {
			obj, err := s.New(gvk)
			if _, ok := obj.(lifecycle.Custom); ok && err == nil {
				all = append(all, rule(gvk))
			}
		}
	}
	return all
}

func rule(gvk schema.GroupVersionKind) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{gvk.Group}, APIVersions: []string{gvk.Version},
			Resources: []string{strings.ToLower(gvk.Kind) + "s"}, Scope: new(admissionregistrationv1.NamespacedScope),
		},
	}
}

// Every kind is advised on, the Service leads there, and nobody can be held up. The
// name of the webhook is forever: see docs/adr/0007-one-webhook-that-always-allows.md.
func TestTheWebhookIsInstalled(t *testing.T) {
	service, config := manifests(t)
	want := []admissionregistrationv1.ValidatingWebhook{{
		Name: "advice.governor.dev",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: service.Namespace, Name: webhookService, Path: new(engine.AdvicePath), Port: &service.Spec.Ports[0].Port,
		}},
		Rules:                   rules(t),
		FailurePolicy:           new(admissionregistrationv1.Ignore),
		MatchPolicy:             new(admissionregistrationv1.Equivalent),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(1)),
		AdmissionReviewVersions: []string{"v1"},
	}}
	byGroup := cmpopts.SortSlices(func(a, b admissionregistrationv1.RuleWithOperations) bool {
		return a.APIGroups[0]+a.Resources[0] < b.APIGroups[0]+b.Resources[0]
	})
	if diff := cmp.Diff(want, config.Webhooks, byGroup); diff != "" {
		t.Error(diff)
	}
	if config.Name != webhookConfiguration || service.Name != webhookService {
		t.Errorf("the code looks for %s and %s, not for %s and %s", webhookConfiguration, webhookService, config.Name, service.Name)
	}
}

func TestOutsideOfAPodThereAreNoWebhooks(t *testing.T) {
	if _, err := os.Stat(namespaceFile); err == nil {
		t.Skip("this test runs in a pod")
	}
	w := webhooks{on: true}
	if err := w.locate(); err != nil || w.on {
		t.Errorf("on %v: %v", w.on, err)
	}
}
