package image

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/governor-dev/governor/localkube/build"
)

// Builder makes images and keeps them in a cache.
type Builder struct{ Cache build.Cache }

// layout changes when the same recipe is to give another image.
const layout = "1"

// Build makes an image, unless the cache has it, and gives the path of its
// docker archive, which `ctr images import` and `docker load` read. An image
// with Debian packages is made of those current at its first build; delete
// the archive to have it made of newer ones.
func (b Builder) Build(ctx context.Context, r Recipe) (path string, err error) {
	if err := r.Validate(); err != nil {
		return "", fmt.Errorf("recipe of %s:\n%w", r.Name, err)
	}
	w := work{Builder: b, recipe: r}
	if err := w.inputs(ctx); err != nil {
		return "", fmt.Errorf("image %s: %w", r.Name, err)
	}
	path = filepath.Join(b.Cache.Dir, "images", fileName(r.Name)+"-"+w.key()+".tar")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	began := time.Now()
	if err := w.pack(ctx, path); err != nil {
		return "", fmt.Errorf("image %s: %w", r.Name, err)
	}
	b.report(r.Name, path, time.Since(began))
	return path, nil
}

func (b Builder) report(name, path string, took time.Duration) {
	if info, err := os.Stat(path); err == nil && b.Cache.Out != nil {
		fmt.Fprintf(b.Cache.Out, "image %s: %d MB, packed in %.1fs\n", name, info.Size()/1e6, took.Seconds())
	}
}

func fileName(reference string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("/:@", r) {
			return '_'
		}
		return r
	}, reference)
}

// work is the making of one image.
type work struct {
	Builder
	recipe   Recipe
	programs string   // folder of programs from Go modules
	sums     []string // of the files
}

// inputs finds what the image is made of, except Debian's packages, which
// cost a look at the network.
func (w *work) inputs(ctx context.Context) (err error) {
	if g := w.recipe.Go; g != nil {
		if g.Family != "" {
			w.programs, err = w.Cache.Family(ctx, g.Family)
		} else {
			w.programs, err = w.Cache.Tools(ctx, g.Packages...)
		}
		if err != nil {
			return err
		}
	}
	for _, f := range w.recipe.Files {
		sum, err := checksum(f)
		if err != nil {
			return err
		}
		w.sums = append(w.sums, sum)
		if w.recipe.Debian == nil {
			if err := runsAlone(f.Source); err != nil {
				return err
			}
		}
	}
	return nil
}

func checksum(f File) (string, error) {
	h := sha256.New()
	if f.Source != "" {
		in, err := os.Open(f.Source)
		if err != nil {
			return "", err
		}
		defer in.Close()
		if _, err := io.Copy(h, in); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// runsAlone refuses a program that needs a dynamic loader, in an image that
// has none: the kernel would only say that the program does not exist.
func runsAlone(source string) error {
	program, err := elf.Open(source)
	if err != nil {
		return nil // no program
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is linked dynamically, and the image has no libraries: build it with CGO_ENABLED=0, or add debian packages", source)
		}
	}
	return nil
}

func (w *work) key() string {
	r := w.recipe
	r.Files = append([]File(nil), r.Files...)
	for i := range r.Files {
		if r.Files[i].Source != "" {
			r.Files[i].Source = w.sums[i]
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // a recipe is strings, lists and maps
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %s %s", layout, runtime.GOARCH, filepath.Base(w.programs), text)
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// pack fills a tree and makes it the image's one layer. The archive gets its
// name when it is complete.
func (w *work) pack(ctx context.Context, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("the cache cannot be written: %w; set GOVERNOR_CACHE to a folder that can", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(path), ".build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	t, err := newTree(tmp, w.recipe.Debian != nil)
	if err != nil {
		return err
	}
	defer t.close()
	if err := w.fill(ctx, t); err != nil {
		return err
	}
	layer := filepath.Join(tmp, "layer.tar.gz")
	if err := compress(t, layer); err != nil {
		return err
	}
	archive := filepath.Join(tmp, "image.tar")
	if err := w.archive(layer, archive); err != nil {
		return err
	}
	return os.Rename(archive, path)
}

// compress is quick rather than thorough: every node unpacks the layer, and
// no network is in between.
func compress(t *tree, to string) error {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	return errors.Join(t.write(z), z.Close(), f.Close())
}

func (w *work) archive(layerFile, to string) error {
	layer, err := tarball.LayerFromFile(layerFile)
	if err != nil {
		return err
	}
	img, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{CreatedBy: "localkube image build", Created: v1.Time{Time: time.Unix(0, 0).UTC()}},
	})
	if err != nil {
		return err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = w.recipe.config()
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return err
	}
	images := map[name.Reference]v1.Image{}
	for _, ref := range w.recipe.references() {
		tag, err := name.NewTag(ref, name.StrictValidation)
		if err != nil {
			return err
		}
		images[tag] = img
	}
	return tarball.MultiRefWriteToFile(to, images)
}
