"""Conan 2 recipe of Ferrite: conan create packaging/conan (docs/install.md#packages)."""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load

SOURCES = ("CMakeLists.txt", "LICENSE", "ferrite.h", "inference.h", "cmake/*", "tensor/*", "autograd/*", "compile/*",
           "nn/*", "dsl/*", "io/*", "exchange/*", "train/*", "tools/*", "packaging/debian/copyright")


class Ferrite(ConanFile):
    name = "ferrite"
    license = "MIT"
    description = "Trains and runs neural networks, recurrent ones above all, on the CPU"
    topics = ("neural-network", "recurrent", "audio", "inference", "training")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "onnx": [True, False], "png": [True, False],
               "levels": ["ANY"]}
    default_options = {"shared": False, "fPIC": True, "onnx": False, "png": False, "levels": "all"}
    implements = ["auto_shared_fpic"]

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._root, "CMakeLists.txt"))
        self.version = re.search(r"project\(Ferrite VERSION ([0-9.]+)", text).group(1)

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, src=self._root, dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        # Headers that are compiled in: programs need none of them.
        self.requires("nlohmann_json/[>=3.11 <4]", visible=False)
        if self.options.onnx:
            self.requires("protozero/[>=1.7 <2]", visible=False)
        if self.options.png:
            self.requires("libpng/[>=1.6 <2]")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.compiler == "msvc":
            raise ConanInvalidConfiguration("cl.exe does not compile Ferrite: choose clang or gcc")

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TOOLS", "EXAMPLES", "TESTS"):
            toolchain.cache_variables[f"FERRITE_BUILD_{part}"] = False
        toolchain.cache_variables["FERRITE_WITH_MPI"] = "OFF"
        toolchain.cache_variables["FERRITE_WITH_C"] = False
        toolchain.cache_variables["FERRITE_WITH_ONNX"] = bool(self.options.onnx)
        toolchain.cache_variables["FERRITE_WITH_PNG"] = bool(self.options.png)
        toolchain.cache_variables["FERRITE_ISA_LEVELS"] = str(self.options.levels)
        toolchain.cache_variables["FERRITE_WERROR"] = False
        toolchain.cache_variables["FERRITE_PRECOMPILE"] = False
        toolchain.cache_variables["FERRITE_UNITY"] = True
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        licences = os.path.join(self.package_folder, "licenses")
        copy(self, "LICENSE", src=self.source_folder, dst=licences)
        copy(self, "copyright", src=os.path.join(self.source_folder, "packaging", "debian"), dst=licences)
        CMake(self).install()

    def package_info(self):
        # Ferrite's own CMake and pkg-config files are used as they were installed.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "Ferrite")]
        components = ((self.options.onnx, "ferrite_onnx"), (self.options.png, "ferrite_png"))
        self.cpp_info.libs = [name for option, name in components if option] + ["ferrite"]
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread", "m"]
