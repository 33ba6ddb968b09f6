package image

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/governor-dev/governor/localkube/build"
)

//go:embed recipes/*.yaml
var recipes embed.FS

// Builtin are the recipes that come with localkube.
func Builtin() []Recipe {
	files, err := fs.Glob(recipes, "recipes/*.yaml")
	if err != nil {
		panic(err)
	}
	var all []Recipe
	for _, file := range files {
		text, err := recipes.ReadFile(file)
		if err != nil {
			panic(err)
		}
		r, err := parse(text)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", file, err)) // embedded and tested
		}
		r.Short = strings.TrimSuffix(filepath.Base(file), ".yaml")
		all = append(all, r)
	}
	return all
}

// Load finds a recipe: a built-in one by its short name or by the reference
// of its image, or else one in a YAML file.
func Load(nameOrFile string) (Recipe, error) {
	var names []string
	for _, r := range Builtin() {
		if nameOrFile == r.Short || slices.Contains(r.references(), nameOrFile) {
			return r, nil
		}
		names = append(names, r.Short)
	}
	text, err := os.ReadFile(nameOrFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Recipe{}, fmt.Errorf("%q is no recipe file and no built-in recipe; built in are %s", nameOrFile, strings.Join(names, ", "))
	}
	if err != nil {
		return Recipe{}, fmt.Errorf("reading the recipe: %w", err)
	}
	r, err := parse(text)
	if err != nil {
		return Recipe{}, fmt.Errorf("%s: %w", nameOrFile, err)
	}
	for i, f := range r.Files {
		if f.Source != "" && !filepath.IsAbs(f.Source) {
			r.Files[i].Source = filepath.Join(filepath.Dir(nameOrFile), f.Source)
		}
	}
	return r, nil
}

func parse(text []byte) (Recipe, error) {
	var r Recipe
	if err := yaml.UnmarshalStrict(text, &r); err != nil {
		return Recipe{}, err
	}
	if err := r.fillVersion(); err != nil {
		return Recipe{}, err
	}
	return r, r.Validate()
}

func (r *Recipe) references() []string { return append([]string{r.Name}, r.Aliases...) }

// fillVersion puts the family's version into the image's names.
func (r *Recipe) fillVersion() error {
	if r.Go == nil || r.Go.Family == "" {
		return nil
	}
	version, err := build.FamilyVersion(r.Go.Family)
	if err != nil {
		return fmt.Errorf("go.family: %w", err)
	}
	r.Name = strings.ReplaceAll(r.Name, "{version}", version)
	for i := range r.Aliases {
		r.Aliases[i] = strings.ReplaceAll(r.Aliases[i], "{version}", version)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
