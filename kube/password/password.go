// Package password adds passwords to the Secrets that ask for one, see [lifecycle.Password].
package password

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/lifecycle"
)

// alphabet needs no quotes in a URI, a shell or a configuration file.
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Finder finds the existing object of a wanted one, see [apply.Applier.Find].
type Finder interface {
	Find(ctx context.Context, owner client.Object, wanted lifecycle.Object) (client.Object, error)
}

// RequestError says that a request cannot be satisfied.
type RequestError struct{ Fault string }

func (e *RequestError) Error() string { return e.Fault }

// Fill returns the objects, with a password in each Secret that asks for one. A password that the Secret has stays. A Secret
// of another owner stays as it was requested, so that the applier refuses it. The random bytes are for new passwords. A
// request that cannot be satisfied is a [RequestError].
func Fill(ctx context.Context, finder Finder, random io.Reader, owner client.Object, objects []lifecycle.Object) ([]lifecycle.Object, error) {
	filled := slices.Clone(objects)
	for i, obj := range objects {
		request, asks, err := lifecycle.PasswordOf(obj)
		if err != nil {
			return nil, &RequestError{err.Error()}
		}
		if !asks {
			continue
		}
		existing, foreign, err := find(ctx, finder, owner, obj)
		if err != nil {
			return nil, err
		}
		if foreign {
			secret := obj.(*corev1.Secret).DeepCopy()
			secret.Data = nil // if the name gets free meanwhile, no Secret has the placeholder for a password
			filled[i] = secret
			continue
		}
		if filled[i], err = complete(obj.(*corev1.Secret), existing, request, random); err != nil {
			return nil, err
		}
	}
	return filled, nil
}

// find returns the existing Secret, or nil. foreign reports that the name is another owner's, or is not free yet.
func find(ctx context.Context, finder Finder, owner client.Object, wanted lifecycle.Object) (existing *corev1.Secret, foreign bool, err error) {
	found, err := finder.Find(ctx, owner, wanted)
	var taken *apply.ForeignError
	var going *apply.StillDeletingError
	switch {
	case errors.As(err, &taken), errors.As(err, &going):
		return nil, true, nil
	case err != nil || found == nil:
		return nil, false, err
	}
	return found.(*corev1.Secret), false, nil
}

// complete is a copy of the wanted Secret with the password that exists, or with a new one. It is written only over the version
// that it is made from, or only if there is none: a password that a user writes or restores meanwhile is not lost.
func complete(wanted, existing *corev1.Secret, request lifecycle.Password, random io.Reader) (*corev1.Secret, error) {
	secret := wanted.DeepCopy()
	secret.ResourceVersion = apply.CreateOnlyVersion
	var value []byte
	if existing != nil {
		value, secret.ResourceVersion = existing.Data[lifecycle.KeyPassword], existing.ResourceVersion
	}
	if len(value) == 0 {
		made, err := generate(request.Length, random)
		if err != nil {
			return nil, err
		}
		value = []byte(made)
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, template := range secret.Data {
		secret.Data[key] = []byte(strings.ReplaceAll(string(template), lifecycle.PasswordPlaceholder, string(value)))
	}
	secret.Data[lifecycle.KeyPassword] = value
	return secret, nil
}

// generate returns a password in which each character is equally likely.
func generate(length int, random io.Reader) (string, error) {
	size, made := big.NewInt(int64(len(alphabet))), make([]byte, length)
	for i := range made {
		n, err := rand.Int(random, size)
		if err != nil {
			return "", fmt.Errorf("cannot make a password: %w", err)
		}
		made[i] = alphabet[n.Int64()]
	}
	return string(made), nil
}
