package lifecycle

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// AnnotationPassword on a Secret of Resources asks for a password. Its value is a [Password] as JSON.
	// [Password.Secret] writes it.
	AnnotationPassword = "governor.dev/password" //nolint:gosec // the name of an annotation

	// PasswordPlaceholder in a value of such a Secret stands for the password, as in "postgresql://app:$(password)@db".
	// A password has letters and digits only, so that it needs no quotes in a URI, a shell or a configuration file.
	PasswordPlaceholder = "$(password)"

	// KeyPassword is the key of the password in the Secret, as in a Secret of the type kubernetes.io/basic-auth.
	KeyPassword = corev1.BasicAuthPasswordKey
)

// Limits of [Password.Length]. 22 of 62 characters have 130 bits of entropy.
const (
	MinPasswordLength     = 16
	DefaultPasswordLength = 32
	MaxPasswordLength     = 256
)

// Password requests a password. It contains no secret, so that a Planner stays pure: the engine adds the password before it
// applies the Secret.
//
// The engine makes a password once, and keeps what the Secret has, also if a user wrote it: the application must then
// accept the new one, which the Driver sees in the Secret. A Secret that was deleted gets another password.
type Password struct {
	// Length is the number of characters; 0 means [DefaultPasswordLength].
	Length int `json:"length,omitempty"`
}

// Secret returns the Secret that asks for the password, to be returned from [Planner.Resources]. The engine replaces
// [PasswordPlaceholder] in each value, and adds [KeyPassword].
func (p Password) Secret(name string, labels map[string]string, values map[string]string) *corev1.Secret {
	request, _ := json.Marshal(p) // a number: it cannot fail
	data := map[string][]byte{}
	for key, value := range values {
		data[key] = []byte(value)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{AnnotationPassword: string(request)}},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
}

// PasswordOf returns the password that the object requests, and false if it requests none. It returns an error for an
// annotation that is unreadable, that asks for a length that is not allowed, or that is on something else than a Secret.
func PasswordOf(obj Object) (Password, bool, error) {
	raw, asks := obj.GetAnnotations()[AnnotationPassword]
	if !asks {
		return Password{}, false, nil
	}
	fail := func(format string, args ...any) (Password, bool, error) {
		return Password{}, true, fmt.Errorf("the annotation %s of %q "+format, append([]any{AnnotationPassword, obj.GetName()}, args...)...)
	}
	if _, is := obj.(*corev1.Secret); !is {
		return fail("is on a %T, allowed is a Secret", obj)
	}
	if _, both := obj.GetAnnotations()[AnnotationCertificate]; both {
		return fail("is beside %s: one Secret has one of them", AnnotationCertificate)
	}
	var p Password
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		return fail("cannot be read: %w", err)
	}
	if p.Length == 0 {
		p.Length = DefaultPasswordLength
	}
	if p.Length < MinPasswordLength || p.Length > MaxPasswordLength {
		return fail("asks for the length %d, allowed are %d to %d", p.Length, MinPasswordLength, MaxPasswordLength)
	}
	return p, true, nil
}
