"""A filesystem somewhere else, whose network can be down."""

from pyarrow import fs


class Elsewhere(fs.FileSystemHandler):
    """Keeps files below a directory, as any remote filesystem might; takes nothing new while it is down."""

    def __init__(self, root):
        self.real = fs.SubTreeFileSystem(str(root), fs.LocalFileSystem())
        self.down = False

    def get_type_name(self):
        return "elsewhere"

    def normalize_path(self, path):
        return path

    def get_file_info(self, paths):
        return self.real.get_file_info(paths)

    def get_file_info_selector(self, selector):
        return self.real.get_file_info(selector)

    def create_dir(self, path, recursive):
        self.real.create_dir(path, recursive=recursive)

    def delete_dir(self, path):
        self.real.delete_dir(path)

    def delete_dir_contents(self, path, missing_dir_ok):
        self.real.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self):
        raise PermissionError("a recorder has no business with all of a filesystem")

    def delete_file(self, path):
        self.real.delete_file(path)

    def move(self, source, target):
        self.real.move(source, target)

    def copy_file(self, source, target):
        self.real.copy_file(source, target)

    def open_input_stream(self, path):
        return self.real.open_input_stream(path)

    def open_input_file(self, path):
        return self.real.open_input_file(path)

    def open_output_stream(self, path, metadata):
        if self.down:
            raise OSError("the network is down")
        return self.real.open_output_stream(path, metadata=metadata)

    def open_append_stream(self, path, metadata):
        return self.real.open_append_stream(path, metadata=metadata)
