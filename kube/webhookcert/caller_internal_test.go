package webhookcert

import (
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

func TestBundlesOf(t *testing.T) {
	bundle := []byte("b")
	service := func(name string) *apiextensionsv1.ServiceReference {
		return &apiextensionsv1.ServiceReference{Name: name, Namespace: "governor-system"}
	}
	hooks := &configuration{Webhooks: make([]admissionregistrationv1.ValidatingWebhook, 2)}
	hooks.Webhooks[1].ClientConfig.CABundle = bundle
	previews := &mutation{Webhooks: make([]admissionregistrationv1.MutatingWebhook, 1)}
	previews.Webhooks[0].ClientConfig.CABundle = bundle
	cases := map[string]struct {
		reason string
		known  bool
		found  client.Object
		want   [][]byte
	}{
		"Unknown": {"whoever was not seen may not trust us", false, nil, [][]byte{nil}},
		"None":    {"whoever is not there does not call", true, nil, nil},
		"Hooks":   {"each webhook counts", true, hooks, [][]byte{nil, bundle}},
		"Preview": {"also one that answers", true, previews, [][]byte{bundle}},
		"Service": {"it calls our Service", true, converting(&apiextensionsv1.WebhookClientConfig{
			Service: service("governor-webhook"), CABundle: bundle}), [][]byte{bundle}},
		"Bare": {"it calls us and trusts nobody yet", true, converting(&apiextensionsv1.WebhookClientConfig{
			Service: service("governor-webhook")}), [][]byte{nil}},
		"Elsewhere": {"the kind belongs to another operator", true, converting(&apiextensionsv1.WebhookClientConfig{
			Service: service("other"), CABundle: bundle}), nil},
		"URL": {"it calls us by another way", true, converting(&apiextensionsv1.WebhookClientConfig{
			URL: new("https://governor-webhook.governor-system.svc:8443/convert"), CABundle: bundle}), [][]byte{bundle}},
		"BadURL":   {"it can call nobody", true, converting(&apiextensionsv1.WebhookClientConfig{URL: new(":")}), nil},
		"NoURL":    {"nor can it", true, converting(&apiextensionsv1.WebhookClientConfig{}), nil},
		"NoClient": {"nor can it", true, converting(nil), nil},
		"NoWebhook": {"all versions are alike", true, &definition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}}}, nil},
		"NoConversion": {"they always were", true, &definition{}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := bundlesOf([]sighting{{known: c.known, found: c.found}}, names)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: %s", c.reason, diff)
			}
		})
	}
}
