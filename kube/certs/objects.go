package certs

import (
	"bytes"
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/lifecycle"
)

// fieldManager is that of what the keeper writes.
const fieldManager = client.FieldOwner("governor-webhook")

// keepers are the annotations of what somebody else keeps.
var keepers = []string{
	"cert-manager.io/certificate-name", "cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret",
}

func keptByOthers(obj client.Object) bool {
	annotations := obj.GetAnnotations()
	for _, key := range keepers {
		if annotations[key] != "" {
			return true
		}
	}
	return annotations[lifecycle.AnnotationPaused] == "true"
}

// configuration is the webhook configuration, nil if there is none.
type configuration = admissionregistrationv1.ValidatingWebhookConfiguration

func (k *Keeper) blank() *corev1.Secret {
	s := &corev1.Secret{Type: corev1.SecretTypeTLS}
	s.Namespace, s.Name = k.options.Namespace, k.options.Secret
	return s
}

// look returns both objects as the watch shows them: a Secret without data if there
// is none, and nil if that is not known yet.
func (k *Keeper) look(ctx context.Context) (*corev1.Secret, *configuration, error) {
	if !k.secret.ready() {
		return nil, nil, nil
	}
	secret := k.blank()
	if _, err := k.find(ctx, k.secret, client.ObjectKeyFromObject(secret), secret); err != nil {
		return nil, nil, err
	}
	config := &configuration{}
	found, err := k.find(ctx, k.config, client.ObjectKey{Name: k.options.Configuration}, config)
	if !found {
		config = nil
	}
	return secret, config, err
}

// fetch reads the Secret from the API server; one that is not there has no data.
func (k *Keeper) fetch(ctx context.Context, secret *corev1.Secret) error {
	*secret = *k.blank()
	err := k.mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read the Secret %s: %w", k.options.Secret, err)
	}
	return nil
}

// save writes the data, if nobody else wrote since the Secret was read.
func (k *Keeper) save(ctx context.Context, secret *corev1.Secret, data Data) error {
	wanted := coreapply.Secret(secret.Name, secret.Namespace).WithType(secret.Type).WithData(data).
		WithLabels(map[string]string{lifecycle.LabelName: "governor", lifecycle.LabelManagedBy: "governor"})
	if secret.ResourceVersion != "" {
		wanted.WithResourceVersion(secret.ResourceVersion)
	}
	if err := k.mgr.GetClient().Apply(ctx, wanted, fieldManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("cannot write the Secret %s: %w", secret.Name, err)
	}
	secret.Data = data
	return nil
}

func bundlesOf(config *configuration) [][]byte {
	if config == nil {
		return nil
	}
	var bundles [][]byte
	for _, hook := range config.Webhooks {
		bundles = append(bundles, hook.ClientConfig.CABundle)
	}
	return bundles
}

// inject makes API servers trust the authorities. It sets that one field and never
// makes the configuration: whoever removed it wants no webhook.
func (k *Keeper) inject(ctx context.Context, config *configuration, authorities []byte) error {
	if config == nil {
		return k.missing()
	}
	if keptByOthers(config) || len(authorities) == 0 || trust(config, authorities) {
		return nil
	}
	wanted := admissionapply.ValidatingWebhookConfiguration(config.Name).WithUID(config.UID)
	for _, hook := range config.Webhooks {
		wanted.WithWebhooks(admissionapply.ValidatingWebhook().WithName(hook.Name).
			WithClientConfig(admissionapply.WebhookClientConfig().WithCABundle(authorities...)))
	}
	if err := k.mgr.GetClient().Apply(ctx, wanted, fieldManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("cannot write the caBundle of the webhook configuration %s: %w", config.Name, err)
	}
	return nil
}

func (k *Keeper) missing() error {
	if !k.config.ready() {
		return nil
	}
	return fmt.Errorf("the ValidatingWebhookConfiguration %s is missing; apply dist/install.yaml to have it back, "+
		"or run with --webhooks=false", k.options.Configuration)
}

func trust(config *configuration, authorities []byte) bool {
	for _, bundle := range bundlesOf(config) {
		if !bytes.Equal(bundle, authorities) {
			return false
		}
	}
	return true
}
