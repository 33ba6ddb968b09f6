package password_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/governor-dev/governor/kube/apply"
	"github.com/governor-dev/governor/kube/password"
	"github.com/governor-dev/governor/lifecycle"
)

// finder has one Secret, or an error.
type finder struct {
	existing *corev1.Secret
	err      error
}

func (f finder) Find(context.Context, client.Object, lifecycle.Object) (client.Object, error) {
	if f.existing == nil {
		return nil, f.err
	}
	return f.existing, f.err
}

func random() *rand.ChaCha8 { return rand.NewChaCha8([32]byte{1}) }

func wanted() *corev1.Secret {
	return lifecycle.Password{}.Secret("db", map[string]string{"a": "b"}, map[string]string{
		"username": "app", "uri": "postgresql://app:$(password)@db-rw:5432/app",
	})
}

func fill(t *testing.T, f finder, wanted lifecycle.Object) *corev1.Secret {
	t.Helper()
	all, err := password.Fill(t.Context(), f, random(), &corev1.ConfigMap{}, []lifecycle.Object{&corev1.ConfigMap{}, wanted})
	if err != nil {
		t.Fatal(err)
	}
	if _, is := all[0].(*corev1.ConfigMap); !is || len(all) != 2 {
		t.Fatalf("got %v", all)
	}
	return all[1].(*corev1.Secret)
}

func TestANewSecretGetsAPassword(t *testing.T) {
	asked := wanted()
	got := fill(t, finder{}, asked)
	made := string(got.Data[lifecycle.KeyPassword])
	if !regexp.MustCompile(`^[A-Za-z0-9]{32}$`).MatchString(made) {
		t.Errorf("the password is %q", made)
	}
	if uri := string(got.Data["uri"]); uri != "postgresql://app:"+made+"@db-rw:5432/app" || string(got.Data["username"]) != "app" {
		t.Errorf("the data is %q", got.Data)
	}
	if len(asked.Data) != 2 || !strings.Contains(string(asked.Data["uri"]), lifecycle.PasswordPlaceholder) {
		t.Error("the planner's object is changed")
	}
	if got.ResourceVersion != apply.CreateOnlyVersion {
		t.Errorf("a Secret that is restored meanwhile would be overwritten: version %q", got.ResourceVersion)
	}
}

// What the Secret has stays, also a user's own password. Other values follow it.
func TestAPasswordStays(t *testing.T) {
	existing := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}, Data: map[string][]byte{lifecycle.KeyPassword: []byte("users own"), "uri": []byte("old")}}
	got := fill(t, finder{existing: existing}, wanted())
	if string(got.Data[lifecycle.KeyPassword]) != "users own" || !strings.Contains(string(got.Data["uri"]), "users own") {
		t.Errorf("the data is %q", got.Data)
	}
	if got.ResourceVersion != "7" {
		t.Errorf("a password that is written meanwhile would be overwritten: version %q", got.ResourceVersion)
	}
}

// A password that a user empties is made again, based on the Secret that lacks it.
func TestAnEmptyPasswordIsMadeAgain(t *testing.T) {
	existing := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}, Data: map[string][]byte{lifecycle.KeyPassword: nil}}
	if got := fill(t, finder{existing: existing}, wanted()); len(got.Data[lifecycle.KeyPassword]) != 32 || got.ResourceVersion != "7" {
		t.Errorf("got %q, version %q", got.Data, got.ResourceVersion)
	}
}

func TestASecretOfAnotherOwnerGetsNone(t *testing.T) {
	for _, err := range []error{&apply.ForeignError{Kind: "Secret", Name: "db"}, &apply.StillDeletingError{}} {
		if got := fill(t, finder{existing: &corev1.Secret{}, err: err}, wanted()); len(got.Data) != 0 {
			t.Errorf("%v: %q", err, got.Data)
		}
	}
}

func TestPasswordsDiffer(t *testing.T) {
	source, seen := random(), map[string]bool{}
	for range 100 {
		all, err := password.Fill(t.Context(), finder{}, source, &corev1.ConfigMap{}, []lifecycle.Object{wanted()})
		if err != nil {
			t.Fatal(err)
		}
		seen[string(all[0].(*corev1.Secret).Data[lifecycle.KeyPassword])] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d of 100 passwords are different", len(seen))
	}
}

// What cannot be read or made is an error, and no Secret without a password.
func TestErrors(t *testing.T) {
	unreadable, both := wanted(), wanted()
	unreadable.Annotations[lifecycle.AnnotationPassword] = "{"
	both.Annotations[lifecycle.AnnotationCertificate] = "{}"
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db", Annotations: wanted().Annotations}}
	for name, c := range map[string]struct {
		obj     lifecycle.Object
		find    error
		says    string
		request bool
	}{
		"Unreadable": {unreadable, nil, `the annotation governor.dev/password of "db" cannot be read`, true},
		"Both":       {both, nil, "one Secret has one of them", true},
		"ConfigMap":  {config, nil, "allowed is a Secret", true},
		"Short":      {lifecycle.Password{Length: 8}.Secret("db", nil, nil), nil, "asks for the length 8, allowed are 16 to 256", true},
		"Away":       {wanted(), errors.New("the API server is away"), "the API server is away", false},
	} {
		_, err := password.Fill(t.Context(), finder{err: c.find}, random(), &corev1.ConfigMap{}, []lifecycle.Object{c.obj})
		var request *password.RequestError
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.As(err, &request) != c.request {
			t.Errorf("%s: %v", name, err)
		}
	}
}
