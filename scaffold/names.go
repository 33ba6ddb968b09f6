package scaffold

import (
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	kindName    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,61}$`)
	versionName = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	moduleName  = regexp.MustCompile(`^[A-Za-z0-9][-A-Za-z0-9._~]*(/[-A-Za-z0-9._~]+)*$`)
)

// taken are packages and folders of every project, what its code imports, and what it calls otherwise.
var taken = []string{
	"api", "config", "driver", "main", "bin", "engine", "operator", "runtime", "errors", "options", "register", "version", "vendor", "internal",
	"lifecycle", "trial", "sim", "client", "rollout", "observe", "testcluster", "corev1", "appsv1", "metav1", "schema", "context", "fmt", "time",
	"os", "testing", "rand", "reflect", "cmp",
}

func (k Kind) lower() string { return strings.ToLower(k.Name) }

// complete returns the kind with its plural.
func (k Kind) complete() Kind {
	if k.Plural == "" {
		k.Plural = plural(k.lower())
	}
	return k
}

// plural is what English makes of most words.
func plural(word string) string {
	for _, end := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(word, end) {
			return word + "es"
		}
	}
	if stem, ok := strings.CutSuffix(word, "y"); ok && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return stem + "ies"
	}
	return word + "s"
}

// check says what cannot be a project, by field, value and what is allowed.
func (p *Project) check() error {
	if wrong := validation.IsDNS1123Label(p.Name); len(wrong) > 0 || len(p.Name) > 40 {
		return fmt.Errorf("NAME is %q: use at most 40 lower case letters, digits and hyphens, beginning and ending with a letter or digit", p.Name)
	}
	if !moduleName.MatchString(p.Module) {
		return fmt.Errorf("--module is %q: use the path of a Go module, e.g. example.com/%s", p.Module, p.Name)
	}
	if wrong := validation.IsDNS1123Subdomain(p.Group); len(wrong) > 0 || !strings.Contains(p.Group, ".") {
		return fmt.Errorf("--group is %q: use a domain name of your own, e.g. cache.example.com", p.Group)
	}
	if !versionName.MatchString(p.Version) {
		return fmt.Errorf("--version is %q: use v1, v1beta1, v1alpha1 or alike", p.Version)
	}
	if len(p.Kinds) == 0 {
		return fmt.Errorf("--kind is empty: an operator needs a kind, e.g. Memcached")
	}
	for i := range p.Kinds {
		p.Kinds[i] = p.Kinds[i].complete()
		if err := p.checkKind(p.Kinds[i]); err != nil {
			return err
		}
	}
	return nil
}

func (p *Project) checkKind(k Kind) error {
	switch {
	case !kindName.MatchString(k.Name):
		return fmt.Errorf("the kind is %q: use letters and digits, beginning with a capital letter, at most 62", k.Name)
	case strings.HasSuffix(k.Name, "List") || strings.HasSuffix(k.Name, "Spec") || strings.HasSuffix(k.Name, "Status"):
		return fmt.Errorf("the kind is %q: names that end with List, Spec or Status are made for every kind", k.Name)
	case token.IsKeyword(k.lower()) || slices.Contains(taken, k.lower()) || k.lower() == p.Version:
		return fmt.Errorf("the kind is %q: a Go package cannot be called %q here; use another name", k.Name, k.lower())
	}
	if app := p.Name + "-" + k.lower(); len(app) > validation.LabelValueMaxLength {
		return fmt.Errorf("the application would be called %q, and a label has at most %d characters: use a shorter NAME or kind", app, validation.LabelValueMaxLength)
	}
	if wrong := validation.IsDNS1035Label(k.Plural); len(wrong) > 0 {
		return fmt.Errorf("--plural is %q: use lower case letters, digits and hyphens, beginning with a letter", k.Plural)
	}
	return nil
}
