package webhookcert

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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

func blankSecret(o Options) *corev1.Secret {
	s := &corev1.Secret{Type: corev1.SecretTypeTLS}
	s.Namespace, s.Name = o.Namespace, o.Secret
	return s
}

// look returns the Secret and its callers as the watches show them: a Secret without
// data if there is none, and nil if that is not known yet.
func (k *Keeper) look(ctx context.Context) (*corev1.Secret, []sighting, error) {
	if !k.secret.ready() {
		return nil, nil, nil
	}
	secret := blankSecret(k.options)
	if _, err := k.find(ctx, &k.secret, secret); err != nil {
		return nil, nil, err
	}
	callers, err := k.survey(ctx)
	return secret, callers, err
}

// fetch reads the Secret from the API server; one that is not there has no data.
func (k *Keeper) fetch(ctx context.Context, secret *corev1.Secret) error {
	*secret = *blankSecret(k.options)
	err := k.mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read the Secret %s: %w", k.options.Secret, err)
	}
	return nil
}

// save writes the data, if nobody else wrote since the Secret was read.
func (k *Keeper) save(ctx context.Context, secret *corev1.Secret, data Data) error {
	program := cmp.Or(k.options.Program, "governor")
	wanted := coreapply.Secret(secret.Name, secret.Namespace).WithType(secret.Type).WithData(data).
		WithLabels(map[string]string{lifecycle.LabelName: program, lifecycle.LabelManagedBy: program})
	if secret.ResourceVersion != "" {
		wanted.WithResourceVersion(secret.ResourceVersion)
	}
	if err := k.mgr.GetClient().Apply(ctx, wanted, fieldManager, client.ForceOwnership); err != nil {
		return fmt.Errorf("cannot write the Secret %s: %w", secret.Name, err)
	}
	secret.Data = data
	return nil
}
