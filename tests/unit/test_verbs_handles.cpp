#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "verbs/check.hpp"

namespace gdrbench::verbs {
namespace {

struct FakeObject {
  std::string name;
  int returned = 0;
};

std::vector<std::string> destroyed;

struct DestroyFake {
  static constexpr const char* name = "destroy_fake";
  static int destroy(FakeObject* object) {
    destroyed.push_back(object->name);
    return object->returned;
  }
};
using FakeHandle = Handle<FakeObject, DestroyFake>;

class VerbsHandle : public testing::Test {
 protected:
  void SetUp() override { destroyed.clear(); }

  /// A parent that records when it goes.
  static Parent parent(const std::string& name) {
    return {new FakeObject{name}, [](FakeObject* object) {
              destroyed.push_back(object->name);
              delete object;
            }};
  }

  FakeObject first_{"first"};
  FakeObject second_{"second"};
};

using Names = std::vector<std::string>;

TEST_F(VerbsHandle, DestroysOnceWhenItGoes) {
  { const FakeHandle handle = own<DestroyFake>(&first_); }
  EXPECT_EQ(destroyed, Names{"first"});
}

TEST_F(VerbsHandle, MoveConstructionDestroysNothing) {
  FakeHandle from = own<DestroyFake>(&first_);
  const FakeHandle to = std::move(from);
  EXPECT_TRUE(destroyed.empty());
  EXPECT_EQ(to.get(), &first_);
}

TEST_F(VerbsHandle, MoveAssignmentDestroysTheOldObjectAtOnceAndTheNewOneLater) {
  {
    FakeHandle handle = own<DestroyFake>(&first_);
    handle = own<DestroyFake>(&second_);
    EXPECT_EQ(destroyed, Names{"first"});
  }
  EXPECT_EQ(destroyed, (Names{"first", "second"}));
}

TEST_F(VerbsHandle, ChildGoesBeforeBothParents) {
  { const FakeHandle handle = own<DestroyFake>(&first_, parent("domain"), parent("queue")); }
  ASSERT_EQ(destroyed.size(), 3U);
  EXPECT_EQ(destroyed.front(), "first");
}

TEST_F(VerbsHandle, MoveAssignmentDestroysTheOldChildBeforeItsParent) {
  FakeHandle handle = own<DestroyFake>(&first_, parent("old parent"));
  handle = own<DestroyFake>(&second_, parent("new parent"));
  EXPECT_EQ(destroyed, (Names{"first", "old parent"}));
}

TEST_F(VerbsHandle, ParentLivesAsLongAsAnyChild) {
  Parent shared = parent("parent");
  FakeHandle first = own<DestroyFake>(&first_, shared);
  FakeHandle second = own<DestroyFake>(&second_, std::move(shared));
  first.reset();
  first = FakeHandle();
  EXPECT_EQ(destroyed, Names{"first"});
  second = FakeHandle();
  EXPECT_EQ(destroyed, (Names{"first", "second", "parent"}));
}

TEST_F(VerbsHandle, NamesTheCallAndTheErrorWhenDestroyingFails) {
  first_.returned = EBUSY;
  testing::internal::CaptureStderr();
  { const FakeHandle handle = own<DestroyFake>(&first_); }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "gdrbench: destroy_fake: EBUSY (16)\n");
}

}  // namespace
}  // namespace gdrbench::verbs
