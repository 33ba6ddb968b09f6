package webhookcert

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func converting(c *apiextensionsv1.WebhookClientConfig) *definition {
	d := &definition{}
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: c},
	}
	return d
}

// calling returns the client configuration of a webhook that is served in the namespace.
func calling(namespace string, bundle ...byte) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Name: "governor-webhook", Namespace: namespace}, CABundle: bundle,
	}
}

func TestBundlesOf(t *testing.T) {
	bundle := []byte("b")
	service := func(name string) *apiextensionsv1.ServiceReference {
		return &apiextensionsv1.ServiceReference{Name: name, Namespace: "governor-system"}
	}
	hooks := &validatingConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{
		{ClientConfig: calling("governor-system")},
		{ClientConfig: calling("governor-system", bundle...)},
		{ClientConfig: calling("governor-two", 'x')},
	}}
	previews := &mutatingConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{{ClientConfig: calling("governor-system", bundle...)}}}
	other := &mutatingConfiguration{Webhooks: []admissionregistrationv1.MutatingWebhook{{ClientConfig: calling("governor-two", 'x')}}}
	cases := map[string]struct {
		synced bool
		found  client.Object
		want   [][]byte
	}{
		"a target that was not seen trusts no authority": {false, nil, [][]byte{nil}},
		"a missing target does not call":                 {true, nil, nil},
		"each webhook has a bundle":                      {true, hooks, [][]byte{nil, bundle}},
		"a configuration of another install":             {true, other, nil},
		"mutating webhooks have a bundle":                {true, previews, [][]byte{bundle}},
		"a kind that calls the Service": {true, converting(&apiextensionsv1.WebhookClientConfig{
			Service: service("governor-webhook"), CABundle: bundle}), [][]byte{bundle}},
		"a kind that calls the Service without a bundle": {true, converting(&apiextensionsv1.WebhookClientConfig{
			Service: service("governor-webhook")}), [][]byte{nil}},
		"a kind of another operator": {true, converting(&apiextensionsv1.WebhookClientConfig{
			Service: service("other"), CABundle: bundle}), nil},
		"a kind that calls a URL with the name": {true, converting(&apiextensionsv1.WebhookClientConfig{
			URL: new("https://governor-webhook.governor-system.svc:8443/convert"), CABundle: bundle}), [][]byte{bundle}},
		"a kind with an invalid URL":            {true, converting(&apiextensionsv1.WebhookClientConfig{URL: new(":")}), nil},
		"a kind without a URL":                  {true, converting(&apiextensionsv1.WebhookClientConfig{}), nil},
		"a kind without a client configuration": {true, converting(nil), nil},
		"a kind without a webhook": {true, &definition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}}}, nil},
		"a kind without conversion": {true, &definition{}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := bundlesOf([]observedTarget{{synced: c.synced, found: c.found}}, names)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Only webhooks that call this operator get its authority.
func TestApplyConfigurationLeavesWebhooksOfOthersOut(t *testing.T) {
	shared := &validatingConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{
		{Name: "own", ClientConfig: calling("governor-system")}, {Name: "other", ClientConfig: calling("governor-two")},
	}}
	raw, err := json.Marshal(applyConfiguration(shared, names, []byte("b")))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(raw); !strings.Contains(got, `"own"`) || strings.Contains(got, `"other"`) {
		t.Error(got)
	}
}

func TestConfigurationOfAnotherInstall(t *testing.T) {
	configuration := func(namespaces ...string) *validatingConfiguration {
		c := &validatingConfiguration{}
		for _, namespace := range namespaces {
			c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{ClientConfig: calling(namespace)})
		}
		return c
	}
	managed := configuration("governor-two")
	managed.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "a/b"}
	cases := map[string]struct {
		found *validatingConfiguration
		want  string // part of the error; empty for none
	}{
		"its own":                 {configuration("governor-system"), ""},
		"shared by hand":          {configuration("governor-two", "governor-system"), ""},
		"without webhooks":        {configuration(), ""},
		"managed by cert-manager": {managed, ""},
		"that of another install": {configuration("governor-two"), "it calls governor-webhook.governor-two.svc, and this operator is governor-webhook.governor-system.svc"},
		"that of two others":      {configuration("governor-two", "governor-three"), "belongs to another install"},
	}
	r := &Rotator{options: Options{Names: names}}
	target := newTrustTargets(Options{Configuration: "governor"})[0]
	for name, c := range cases {
		err := r.belongsElsewhere(observedTarget{trustTarget: target, synced: true, found: c.found})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
