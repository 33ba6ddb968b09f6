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
	validatingConfiguration = admissionregistrationv1.ValidatingWebhookConfiguration
	mutatingConfiguration   = admissionregistrationv1.MutatingWebhookConfiguration
	definition              = apiextensionsv1.CustomResourceDefinition
)

// trustTarget is an object that tells API servers which webhook to call and which
// authorities to trust.
type trustTarget struct {
	watched
	missing error // to report if the object does not exist; nil if it may be created later
}

func newTrustTargets(o Options) []*trustTarget {
	validating, mutating := &validatingConfiguration{}, &mutatingConfiguration{}
	validating.Name, mutating.Name = o.Configuration, o.Configuration
	all := []*trustTarget{
		newConfigurationTarget(validating, "ValidatingWebhookConfiguration "+o.Configuration, noAdvice),
		newConfigurationTarget(mutating, "MutatingWebhookConfiguration "+o.Configuration, noPreview),
	}
	for _, name := range o.Definitions {
		d := &definition{}
		d.Name = name
		all = append(all, &trustTarget{watched: watched{object: d, topic: topic{"CustomResourceDefinition " + name, noConversion}}})
	}
	return all
}

func newConfigurationTarget(object client.Object, name, loss string) *trustTarget {
	return &trustTarget{
		watched: watched{object: object, topic: topic{name, loss}},
		missing: fmt.Errorf("the %s is missing; apply dist/install.yaml to restore it, or run with --webhooks=false", name),
	}
}

// observedTarget is a target and what its watch shows.
type observedTarget struct {
	*trustTarget
	synced bool
	found  client.Object // nil if it does not exist
}

func (r *Rotator) observeTargets(ctx context.Context) ([]observedTarget, error) {
	var all []observedTarget
	for _, t := range r.targets {
		observed := observedTarget{trustTarget: t, synced: t.isSynced()}
		found := t.object.DeepCopyObject().(client.Object)
		exists, err := r.find(ctx, &t.watched, found)
		if err != nil {
			return nil, err
		}
		if exists {
			observed.found = found
		}
		all = append(all, observed)
	}
	return all, nil
}

// bundlesOf returns the bundles that the targets trust. A target whose watch has not synced
// counts as one that trusts no authority.
func bundlesOf(all []observedTarget, names []string) [][]byte {
	var bundles [][]byte
	for _, t := range all {
		if !t.synced {
			bundles = append(bundles, nil)
		}
		bundles = append(bundles, bundlesIn(t.found, names)...)
	}
	return bundles
}

// bundlesIn returns the bundle of every place in the object that calls one of the names.
func bundlesIn(obj client.Object, names []string) [][]byte {
	var bundles [][]byte
	for _, c := range callsOf(obj) {
		if slices.Contains(names, c.host) {
			bundles = append(bundles, c.bundle)
		}
	}
	return bundles
}

// call is one place in a target that calls a webhook.
type call struct {
	host   string // the DNS name that the API server calls
	bundle []byte
}

func callsOf(obj client.Object) []call {
	var all []call
	switch obj := obj.(type) {
	case *validatingConfiguration:
		for _, hook := range obj.Webhooks {
			all = append(all, callOfHook(hook.ClientConfig))
		}
	case *mutatingConfiguration:
		for _, hook := range obj.Webhooks {
			all = append(all, callOfHook(hook.ClientConfig))
		}
	case *definition:
		if c := obj.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil {
			to := c.Webhook.ClientConfig
			all = append(all, call{hostOf(to.Service, to.URL), to.CABundle})
		}
	}
	return all
}

func callOfHook(c admissionregistrationv1.WebhookClientConfig) call {
	return call{hostOf((*apiextensionsv1.ServiceReference)(c.Service), c.URL), c.CABundle}
}

// hostOf returns the DNS name that the API server calls.
func hostOf(service *apiextensionsv1.ServiceReference, address *string) string {
	if service != nil {
		return service.Name + "." + service.Namespace + ".svc"
	}
	if address == nil {
		return ""
	}
	parsed, err := url.Parse(*address)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// belongsElsewhere returns an error if a webhook configuration calls only other servers. The
// configurations are cluster-scoped, so two installs of the operator share them: each would
// overwrite the caBundle of the other for ever.
func (r *Rotator) belongsElsewhere(t observedTarget) error {
	if t.missing == nil || t.found == nil || isManagedElsewhere(t.found) {
		return nil
	}
	calls := callsOf(t.found)
	ours := func(c call) bool { return slices.Contains(r.options.Names, c.host) }
	if len(calls) == 0 || slices.ContainsFunc(calls, ours) {
		return nil
	}
	return fmt.Errorf("the %s belongs to another install: it calls %s, and this operator is %s; "+
		"delete one of the two, or run this one with --watch-namespaces and --webhooks=false",
		t.name, calls[0].host, r.options.Names[0])
}

// inject makes the targets trust the authorities.
func (r *Rotator) inject(ctx context.Context, all []observedTarget, authorities []byte) error {
	var errs []error
	for _, t := range all {
		if err := r.belongsElsewhere(t); err != nil {
			errs = append(errs, r.report(topic{t.name, twoInstalls}, err))
			continue
		}
		errs = append(errs, r.report(t.topic, r.injectInto(ctx, t, authorities)))
	}
	return errors.Join(errs...)
}

// injectInto writes the caBundle only. It never creates the object, because a user who
// deletes it wants no webhook.
func (r *Rotator) injectInto(ctx context.Context, t observedTarget, authorities []byte) error {
	if !t.synced {
		return nil
	}
	if t.found == nil {
		return t.missing
	}
	differs := func(bundle []byte) bool { return !bytes.Equal(bundle, authorities) }
	if isManagedElsewhere(t.found) || len(authorities) == 0 || !slices.ContainsFunc(bundlesIn(t.found, r.options.Names), differs) {
		return nil
	}
	if err := r.mgr.GetClient().Apply(ctx, applyConfiguration(t.found, r.options.Names, authorities), fieldManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("cannot write the caBundle of the %s: %w", t.name, err)
	}
	return nil
}

// applyConfiguration has the caBundle of the webhooks that call one of the names, and no other
// field. The UID keeps the API server from creating the object.
func applyConfiguration(obj client.Object, names []string, authorities []byte) runtime.ApplyConfiguration {
	trust := admissionapply.WebhookClientConfig().WithCABundle(authorities...)
	switch obj := obj.(type) {
	case *validatingConfiguration:
		wanted := admissionapply.ValidatingWebhookConfiguration(obj.Name).WithUID(obj.UID)
		for _, hook := range obj.Webhooks {
			if slices.Contains(names, callOfHook(hook.ClientConfig).host) {
				wanted.WithWebhooks(admissionapply.ValidatingWebhook().WithName(hook.Name).WithClientConfig(trust))
			}
		}
		return wanted
	case *mutatingConfiguration:
		wanted := admissionapply.MutatingWebhookConfiguration(obj.Name).WithUID(obj.UID)
		for _, hook := range obj.Webhooks {
			if slices.Contains(names, callOfHook(hook.ClientConfig).host) {
				wanted.WithWebhooks(admissionapply.MutatingWebhook().WithName(hook.Name).WithClientConfig(trust))
			}
		}
		return wanted
	}
	return definitionapply.CustomResourceDefinition(obj.GetName()).WithUID(obj.GetUID()).
		WithSpec(definitionapply.CustomResourceDefinitionSpec().
			WithConversion(definitionapply.CustomResourceConversion().
				WithWebhook(definitionapply.WebhookConversion().
					WithClientConfig(definitionapply.WebhookClientConfig().WithCABundle(authorities...)))))
}
