// WorkFolder: where a conversion's files are until all are there. Without resume it is a
// StagedDirectory. With it, an interrupted conversion leaves the folder beside the output, with a
// manifest of the files that are finished, and the next one with the same fingerprint goes on from
// there.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace tq {

// kCancelled, with what becomes of the work.
Status ConversionStopped(bool resume);

class WorkFolder {
 public:
  struct Options {
    bool resume = false;
    // Of all that decides the bytes of the output; only with resume.
    std::string fingerprint;
  };

  // Errors: kInvalidArgument (final_path exists; the folder left there is of another fingerprint),
  // kCorrupt (it is damaged), kBusy (another process works in it), kIo.
  static Result<std::unique_ptr<WorkFolder>> Create(const std::string& final_path,
                                                    const Options& options);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return path_; }

  // The file is there as an earlier run finished it: length and hash agree. It is read for that.
  bool IsFinished(const std::string& name) const;
  // `name` is complete; a resuming run need not write it again. Does nothing without resume.
  Status SetFinished(const std::string& name);

  // The folder becomes final_path.
  Status Commit();

 private:
  struct Manifest;

  WorkFolder();
  Status OpenForResume(const std::string& final_path, const std::string& fingerprint);
  Status ReadManifest(const std::string& fingerprint);
  Status WriteManifest() const;
  std::string ManifestPath() const;

  std::unique_ptr<StagedDirectory> staged_;  // without resume
  std::string path_;
  std::string final_path_;
  int lock_ = -1;  // the folder, while this process works in it
  std::unique_ptr<Manifest> manifest_;
};

}  // namespace tq
