// main() for a fuzz target without a fuzzer: runs the target once over every stored input and reports how many there
// were. The program fuzz_NAME reads $top_srcdir/test/fuzz/corpus/NAME, or the files and folders it is given.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

fs::path corpus_of(const std::string& program) {
  std::string name = fs::path(program).filename();
  if (name.rfind("fuzz_", 0) == 0) name.erase(0, 5);
  const char* top = std::getenv("top_srcdir");
  return fs::path(top ? top : ".") / "test" / "fuzz" / "corpus" / name;
}

std::vector<fs::path> files_in(const fs::path& path) {
  if (fs::is_regular_file(path)) return {path};
  std::vector<fs::path> files;
  if (!fs::is_directory(path)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  // An exact heap copy: AddressSanitizer then sees a read of even one byte too many.
  auto copy = std::make_unique<std::uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);  // names the culprit if the target crashes
  LLVMFuzzerTestOneInput(copy.get(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> roots(argv + 1, argv + argc);
  if (roots.empty()) roots.push_back(corpus_of(argv[0]));
  std::size_t count = 0;
  for (const fs::path& root : roots) {
    for (const fs::path& file : files_in(root)) {
      replay(file);
      ++count;
    }
  }
  std::printf("%zu inputs replayed\n", count);
  if (count == 0) {
    std::fprintf(stderr, "no inputs in %s\n", roots.front().c_str());
    return 1;
  }
  return 0;
}
