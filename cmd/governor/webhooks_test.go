package main

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/governor-dev/governor/engine"
	"github.com/governor-dev/governor/kube/conversion"
	"github.com/governor-dev/governor/lifecycle"
)

// The names that the program derives from its own; see operator.Options.
const (
	webhookService       = "governor-webhook"
	webhookConfiguration = "governor"
)

// manifests reads the Service and the configurations.
func manifests(t *testing.T) (
	service corev1.Service, advice admissionregistrationv1.ValidatingWebhookConfiguration,
	previews admissionregistrationv1.MutatingWebhookConfiguration,
) {
	t.Helper()
	raw, err := os.ReadFile("../../config/manager/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	into := []any{&service, &advice, &previews}
	for i, doc := range bytes.Split(raw, []byte("---\n")) {
		if err := yaml.UnmarshalStrict(doc, into[i]); err != nil {
			t.Fatal(err)
		}
	}
	return service, advice, previews
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
			if _, ok := obj.(lifecycle.Resource); ok && err == nil {
				all = append(all, rule(gvk))
			}
		}
	}
	return all
}

// inEveryVersion are the rules with all versions of their kinds: a client that writes an
// earlier one may ask in it what that would do.
func inEveryVersion(t *testing.T, present []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	t.Helper()
	all := slices.Clone(present)
	for i, r := range all {
		versions := map[string]bool{}
		for _, add := range apis() {
			s := runtime.NewScheme()
			if err := add(s); err != nil {
				t.Fatal(err)
			}
			for gvk := range s.AllKnownTypes() {
				if gvk.Group == r.APIGroups[0] && strings.ToLower(gvk.Kind)+"s" == r.Resources[0] {
					versions[gvk.Version] = true
				}
			}
		}
		all[i].APIVersions = slices.Sorted(maps.Keys(versions))
	}
	return all
}

// advised are the rules with the deletions that users are warned of.
func advised(rules []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	for i := range rules {
		if slices.Equal(rules[i].Resources, []string{"etcdclusters"}) {
			rules[i].Operations = append(rules[i].Operations, admissionregistrationv1.Delete)
		}
	}
	return rules
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

// Every kind is advised on, the Service leads there, and no request can be held up. The
// name of the webhook is forever: see docs/adr/0007-one-webhook-that-always-allows.md.
func TestTheWebhookIsInstalled(t *testing.T) {
	service, config, previews := manifests(t)
	want := []admissionregistrationv1.ValidatingWebhook{{
		Name: "advice.governor.dev",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: service.Namespace, Name: webhookService, Path: new(engine.AdvicePath), Port: &service.Spec.Ports[0].Port,
		}},
		Rules:                   advised(rules(t)),
		FailurePolicy:           new(admissionregistrationv1.Ignore),
		MatchPolicy:             new(admissionregistrationv1.Equivalent),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(3)),
		AdmissionReviewVersions: []string{"v1"},
	}}
	wantPreviews := []admissionregistrationv1.MutatingWebhook{{
		Name:         "preview.governor.dev",
		ClientConfig: *want[0].ClientConfig.DeepCopy(), Rules: inEveryVersion(t, rules(t)),
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "dry-run-that-asks",
			Expression: "has(request.dryRun) && request.dryRun && has(object.metadata.annotations) && '" +
				lifecycle.AnnotationPreview + "' in object.metadata.annotations",
		}},
		FailurePolicy:           new(admissionregistrationv1.Ignore),
		MatchPolicy:             new(admissionregistrationv1.Exact),
		ReinvocationPolicy:      new(admissionregistrationv1.NeverReinvocationPolicy),
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          new(int32(5)),
		AdmissionReviewVersions: []string{"v1"},
	}}
	wantPreviews[0].ClientConfig.Service.Path = new(engine.PreviewPath)
	byGroup := cmpopts.SortSlices(func(a, b admissionregistrationv1.RuleWithOperations) bool {
		return a.APIGroups[0]+a.Resources[0] < b.APIGroups[0]+b.Resources[0]
	})
	if diff := cmp.Diff(want, config.Webhooks, byGroup); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(wantPreviews, previews.Webhooks, byGroup); diff != "" {
		t.Error(diff)
	}
	if config.Name != webhookConfiguration || previews.Name != webhookConfiguration || service.Name != webhookService {
		t.Errorf("the code looks for %s and %s, not for %s and %s", webhookConfiguration, webhookService, config.Name, service.Name)
	}
}

// Every definition that the install has converted is converted here, by an address
// that the Service has.
func TestConversionIsInstalled(t *testing.T) {
	service, _, _ := manifests(t)
	raw, err := os.ReadFile("../../dist/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, doc := range bytes.Split(raw, []byte("---\n")) {
		var d apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(doc, &d); err != nil {
			t.Fatal(err)
		}
		if d.Kind != "CustomResourceDefinition" || d.Spec.Conversion == nil {
			continue
		}
		got = append(got, d.Name)
		want := &apiextensionsv1.ServiceReference{
			Namespace: service.Namespace, Name: webhookService, Path: new(conversion.Path), Port: &service.Spec.Ports[0].Port,
		}
		if diff := cmp.Diff(want, d.Spec.Conversion.Webhook.ClientConfig.Service); diff != "" {
			t.Errorf("%s: %s", d.Name, diff)
		}
		everyWay(t, d)
	}
	if diff := cmp.Diff(converted, got); diff != "" {
		t.Error(diff)
	}
}

// everyWay converts an object from each version that is served to each other.
func everyWay(t *testing.T, d apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, from := range d.Spec.Versions {
		for _, to := range d.Spec.Versions {
			if from.Name == to.Name {
				continue
			}
			body := fmt.Sprintf(`{"request":{"uid":"u","desiredAPIVersion":"%s/%s","objects":[{"apiVersion":"%s/%s","kind":"%s","metadata":{"name":"n"}}]}}`,
				d.Spec.Group, to.Name, d.Spec.Group, from.Name, d.Spec.Names.Kind)
			w := httptest.NewRecorder()
			conversions().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, conversion.Path, strings.NewReader(body)))
			if want := fmt.Sprintf(`"apiVersion":"%s/%s"`, d.Spec.Group, to.Name); !strings.Contains(w.Body.String(), want) {
				t.Errorf("from %s to %s: %s", from.Name, to.Name, w.Body)
			}
		}
	}
}

// Conversion is part of every request for a legacy object.
func BenchmarkConversion(b *testing.B) {
	raw, err := os.ReadFile("../../apps/etcd/legacy/testdata/cluster.yaml")
	if err != nil {
		b.Fatal(err)
	}
	object, err := yaml.YAMLToJSON(raw)
	if err != nil {
		b.Fatal(err)
	}
	body := `{"request":{"uid":"u","desiredAPIVersion":"etcd.database.coreos.com/v1","objects":[` + string(object) + `]}}`
	h := conversions()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(b.Context(), http.MethodPost, conversion.Path, strings.NewReader(body)))
	}
}
