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
	hooks := &validatingConfiguration{Webhooks: make([]admissionregistrationv1.ValidatingWebhook, 2)}
	hooks.Webhooks[1].ClientConfig.CABundle = bundle
	previews := &mutatingConfiguration{Webhooks: make([]admissionregistrationv1.MutatingWebhook, 1)}
	previews.Webhooks[0].ClientConfig.CABundle = bundle
	cases := map[string]struct {
		synced bool
		found  client.Object
		want   [][]byte
	}{
		"a target that was not seen trusts no authority": {false, nil, [][]byte{nil}},
		"a missing target does not call":                 {true, nil, nil},
		"each webhook has a bundle":                      {true, hooks, [][]byte{nil, bundle}},
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
