package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/engine"
)

func load(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(raw, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// kinds are those that the operator runs, by the path of their advice.
func kinds(t *testing.T) map[string]schema.GroupVersionKind {
	t.Helper()
	byPath := map[string]schema.GroupVersionKind{}
	for _, add := range apis() {
		s := runtime.NewScheme()
		if err := add(s); err != nil {
			t.Fatal(err)
		}
		for gvk := range s.AllKnownTypes() {
			obj, err := s.New(gvk)
			if _, ok := obj.(lifecycle.Custom); ok && err == nil {
				byPath[engine.AdvicePath(gvk)] = gvk
			}
		}
	}
	return byPath
}

// Every kind has its webhook, at its path, and none can hold a user up.
func TestWebhooksAreInstalled(t *testing.T) {
	var config admissionregistrationv1.ValidatingWebhookConfiguration
	load(t, "../../config/webhook/manifests.yaml", &config)
	if config.Name != webhookConfiguration {
		t.Errorf("the configuration is %s, the code looks for %s", config.Name, webhookConfiguration)
	}
	waiting := kinds(t)
	for _, hook := range config.Webhooks {
		path := *hook.ClientConfig.Service.Path
		gvk, ok := waiting[path]
		if !ok {
			t.Errorf("%s is served for no kind, or twice", path)
		}
		delete(waiting, path)
		if diff := cmp.Diff(harmless(hook, gvk, path), hook); diff != "" {
			t.Errorf("%s: %s", hook.Name, diff)
		}
	}
	for path, gvk := range waiting {
		t.Errorf("%s has no webhook: add a marker for %s", gvk, path)
	}
}

// harmless is how the webhook of the kind has to be.
func harmless(hook admissionregistrationv1.ValidatingWebhook, gvk schema.GroupVersionKind, path string) admissionregistrationv1.ValidatingWebhook {
	resources := hook.Rules[0].Resources // their plural is known to the CRD only
	return admissionregistrationv1.ValidatingWebhook{
		Name: resources[0] + "." + gvk.Group,
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: "governor-system", Name: webhookService, Path: &path,
		}},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{gvk.Group}, APIVersions: []string{gvk.Version}, Resources: resources[:1],
			},
		}},
		FailurePolicy:           new(admissionregistrationv1.Ignore),
		MatchPolicy:             new(admissionregistrationv1.Equivalent),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(1)),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func TestTheServiceLeadsToTheWebhooks(t *testing.T) {
	var service corev1.Service
	load(t, "../../config/manager/webhook.yaml", &service)
	if service.Name != webhookService || service.Spec.Ports[0].Port != 443 {
		t.Errorf("the service is %s:%d, API servers call %s:443", service.Name, service.Spec.Ports[0].Port, webhookService)
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
