package webhookcert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitionapply "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type (
	// configuration tells API servers whom to ask about what users apply.
	configuration = admissionregistrationv1.ValidatingWebhookConfiguration
	// mutation tells them whom to ask for previews.
	mutation = admissionregistrationv1.MutatingWebhookConfiguration
	// definition tells API servers who converts between the versions of a kind.
	definition = apiextensionsv1.CustomResourceDefinition
)

// caller is an object by which API servers know whom to call and whom to trust.
type caller struct {
	view
	absent error // what to tell if there is none; nil where one may come later
}

// newCallers are all that call by the names.
func newCallers(o Options) []*caller {
	config, preview := &configuration{}, &mutation{}
	config.Name, preview.Name = o.Configuration, o.Configuration
	all := []*caller{
		newHooks(config, "ValidatingWebhookConfiguration "+o.Configuration, noAdvice),
		newHooks(preview, "MutatingWebhookConfiguration "+o.Configuration, noPreview),
	}
	for _, name := range o.Definitions {
		d := &definition{}
		d.Name = name
		all = append(all, &caller{view: view{object: d, matter: matter{"CustomResourceDefinition " + name, noConversion}}})
	}
	return all
}

func newHooks(object client.Object, name, loss string) *caller {
	return &caller{
		view:   view{object: object, matter: matter{name, loss}},
		absent: fmt.Errorf("the %s is missing; apply dist/install.yaml to have it back, or run with --webhooks=false", name),
	}
}

// sighting is what is known of a caller at present.
type sighting struct {
	*caller
	known bool
	found client.Object // nil if there is none
}

// survey sees every caller as its watch shows it.
func (k *Keeper) survey(ctx context.Context) ([]sighting, error) {
	var all []sighting
	for _, c := range k.callers {
		s := sighting{caller: c, known: c.ready()}
		found := c.object.DeepCopyObject().(client.Object)
		had, err := k.find(ctx, &c.view, found)
		if err != nil {
			return nil, err
		}
		if had {
			s.found = found
		}
		all = append(all, s)
	}
	return all, nil
}

// bundlesOf are what the callers trust. Whoever was not seen yet trusts nobody.
func bundlesOf(all []sighting, names []string) [][]byte {
	var bundles [][]byte
	for _, s := range all {
		if !s.known {
			bundles = append(bundles, nil)
		}
		bundles = append(bundles, trusts(s.found, names)...)
	}
	return bundles
}

// trusts are the bundles of the object, one for each place where it calls by one of
// the names; what calls elsewhere is the matter of others.
func trusts(obj client.Object, names []string) [][]byte {
	switch obj := obj.(type) {
	case *configuration:
		var bundles [][]byte
		for _, hook := range obj.Webhooks {
			bundles = append(bundles, hook.ClientConfig.CABundle)
		}
		return bundles
	case *mutation:
		var bundles [][]byte
		for _, hook := range obj.Webhooks {
			bundles = append(bundles, hook.ClientConfig.CABundle)
		}
		return bundles
	case *definition:
		c := obj.Spec.Conversion
		if c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil && slices.Contains(names, host(c.Webhook.ClientConfig)) {
			return [][]byte{c.Webhook.ClientConfig.CABundle}
		}
	}
	return nil
}

// host is the name by which the API server calls.
func host(c *apiextensionsv1.WebhookClientConfig) string {
	if c.Service != nil {
		return c.Service.Name + "." + c.Service.Namespace + ".svc"
	}
	if c.URL == nil {
		return ""
	}
	address, err := url.Parse(*c.URL)
	if err != nil {
		return ""
	}
	return address.Hostname()
}

// inject makes API servers trust the authorities.
func (k *Keeper) inject(ctx context.Context, all []sighting, authorities []byte) error {
	var faults []error
	for _, s := range all {
		faults = append(faults, k.tell(s.matter, k.injectInto(ctx, s, authorities)))
	}
	return errors.Join(faults...)
}

// injectInto sets that one field and never makes the object: whoever removed it
// wants no webhook.
func (k *Keeper) injectInto(ctx context.Context, s sighting, authorities []byte) error {
	if !s.known {
		return nil
	}
	if s.found == nil {
		return s.absent
	}
	distrust := func(bundle []byte) bool { return !bytes.Equal(bundle, authorities) }
	if keptByOthers(s.found) || len(authorities) == 0 || !slices.ContainsFunc(trusts(s.found, k.options.Names), distrust) {
		return nil
	}
	if err := k.mgr.GetClient().Apply(ctx, trusting(s.found, authorities), fieldManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("cannot write the caBundle of the %s: %w", s.name, err)
	}
	return nil
}

// trusting is the object with the authorities and no other field. Its UID keeps the
// API server from making one.
func trusting(obj client.Object, authorities []byte) runtime.ApplyConfiguration {
	trust := admissionapply.WebhookClientConfig().WithCABundle(authorities...)
	switch obj := obj.(type) {
	case *configuration:
		wanted := admissionapply.ValidatingWebhookConfiguration(obj.Name).WithUID(obj.UID)
		for _, hook := range obj.Webhooks {
			wanted.WithWebhooks(admissionapply.ValidatingWebhook().WithName(hook.Name).WithClientConfig(trust))
		}
		return wanted
	case *mutation:
		wanted := admissionapply.MutatingWebhookConfiguration(obj.Name).WithUID(obj.UID)
		for _, hook := range obj.Webhooks {
			wanted.WithWebhooks(admissionapply.MutatingWebhook().WithName(hook.Name).WithClientConfig(trust))
		}
		return wanted
	}
	return definitionapply.CustomResourceDefinition(obj.GetName()).WithUID(obj.GetUID()).
		WithSpec(definitionapply.CustomResourceDefinitionSpec().
			WithConversion(definitionapply.CustomResourceConversion().
				WithWebhook(definitionapply.WebhookConversion().
					WithClientConfig(definitionapply.WebhookClientConfig().WithCABundle(authorities...)))))
}
